#include <common/matrices/gzip.hpp>

#include <common/genome/text_source.hpp>

#include <zlib.h>

#include <stdexcept>

namespace matrices {

namespace {

class gzip_stream final : public far::byte_stream {
 public:
  explicit gzip_stream(const std::string& path) : source_(path) {}
  std::size_t read(char* to, std::size_t n) override { return source_.read(to, n); }

 private:
  genome::text_source source_;
};

}  // namespace

std::unique_ptr<far::byte_stream> open_gzip(const std::string& path) {
  return std::make_unique<gzip_stream>(path);
}

std::string pack_gzip(std::string_view text) {
  z_stream state{};
  if (deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::runtime_error("not enough memory to compress");
  std::string packed(deflateBound(&state, static_cast<uLong>(text.size())), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  int result = deflate(&state, Z_FINISH);
  packed.resize(packed.size() - state.avail_out);
  deflateEnd(&state);
  if (result != Z_STREAM_END) throw std::runtime_error("the text cannot be compressed");
  return packed;
}

}  // namespace matrices
