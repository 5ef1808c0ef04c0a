// The trace of a run: one line an event, for people.
//
//      step
//        41  rank 1    puts 24 B to rank 0 +0x1200, in 2 pieces: #7 #8
//        57            #8 of rank 1 lands: 8 B on rank 0 +0x1210
#pragma once

#include <farside/base/error.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

class trace {
 public:
  trace() = default;
  /// To a file; or kept until the next run begins, if only the last one matters.
  trace(const std::string& path, bool keep_last) : keeps_last_(keep_last) {
    if (path.empty()) return;
    file_.reset(std::fopen(path.c_str(), "w"));
    if (!file_)
      raise("cannot write the trace to ", path, ": ", std::strerror(errno),
            ". FARSIDE_SIM_TRACE names a file that can be written.");
  }
  explicit operator bool() const { return file_ != nullptr || keeps_last_; }

  template <class... Parts>
  void line(std::uint64_t step, const char* form, const Parts&... parts) {
    char text[240];
    int head = std::snprintf(text, sizeof text, "%10llu  ", static_cast<unsigned long long>(step));
    auto room = sizeof text - static_cast<std::size_t>(head);
    if constexpr (sizeof...(Parts) == 0)
      std::snprintf(text + head, room, "%s", form);
    else
      std::snprintf(text + head, room, form, parts...);
    if (keeps_last_)
      kept_.append(text).push_back('\n');
    else
      std::fprintf(file_.get(), "%s\n", text);
  }

  void forget() { kept_.clear(); }
  /// Shows what is kept, also in the file.
  void show(std::FILE* to) {
    std::fputs(kept_.c_str(), to);
    if (file_) std::fputs(kept_.c_str(), file_.get());
  }

 private:
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, closer> file_;
  bool keeps_last_ = false;
  std::string kept_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
