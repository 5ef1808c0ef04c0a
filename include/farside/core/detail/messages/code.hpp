// Which function is meant, on another rank: its place within the file that it was loaded from.
//
// A code address is another one in each process, as the kernel loads programs and libraries where
// it likes (ASLR). What ranks have in common is the files: a function lies at one distance from the
// beginning of its file's image wherever that is loaded. So an address travels as
//
//   module   a hash of the file's build id, which the linker makes of its contents; of its name and
//            the sizes of its segments where it has none
//   offset   from where that file was loaded
//
// and is made an address again by looking up where this process has loaded the same file. That
// holds for programs, position-independent or not, and for any shared library, also one loaded
// later, and needs no registration. Names of types, the other way, are no identity: two translation
// units may each have a lambda in a static function of the same name. A rank with another build of
// the file has another build id, and says so instead of jumping somewhere; offsets outside of a
// file's code are refused too.
#pragma once

#include <farside/base/error.hpp>
#include <farside/core/hash.hpp>

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

struct code_address {
  std::uint64_t module = 0, offset = 0;
  friend bool operator==(const code_address&, const code_address&) = default;
};

/// The files of this process and where they are. One thread at a time.
class code_map {
 public:
  /// The name of a function for all ranks.
  code_address encode(const void* code) {
    auto at = reinterpret_cast<std::uintptr_t>(code);
    for (int attempt = 0; attempt < 2; ++attempt) {
      for (const loaded_module& m : modules_)
        if (m.has(at)) return {m.key, at - m.base};
      read_modules();
    }
    raise(
        "a message names a function that lies in no file of this program, as code made at run time "
        "does. Other ranks could not find it: use a function of the program or of a shared "
        "library.");
  }

  /// Where that function is here.
  const void* decode(code_address code) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (const loaded_module* m = find(code.module); m != nullptr && m->has(m->base + code.offset))
        return reinterpret_cast<const void*>(m->base + code.offset);
      read_modules();
    }
    raise(
        "a message names a function of a file that this rank has not loaded, or has in another "
        "build. Start all ranks from one program, and load on all of them the shared libraries "
        "whose functions are sent.");
  }

 private:
  struct range {
    std::uintptr_t begin, end;
  };
  struct loaded_module {
    std::uint64_t key = 0;
    std::uintptr_t base = 0;
    std::vector<range> code;

    bool has(std::uintptr_t at) const {
      for (range r : code)
        if (at >= r.begin && at < r.end) return true;
      return false;
    }
  };

  const loaded_module* find(std::uint64_t key) const {
    const loaded_module* found = nullptr;
    for (const loaded_module& m : modules_) {
      if (m.key != key) continue;
      if (found != nullptr)
        raise("a message names a function of a file that this rank has loaded twice.");
      found = &m;
    }
    return found;
  }

  void read_modules() {
    modules_.clear();
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
          static_cast<code_map*>(to)->add(*info);
          return 0;
        },
        this);
  }

  void add(const dl_phdr_info& info) {
    loaded_module m;
    m.base = info.dlpi_addr;
    std::string otherwise = info.dlpi_name;
    otherwise.erase(0, otherwise.rfind('/') + 1);
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& part = info.dlpi_phdr[i];
      if (part.p_type == PT_NOTE) m.key = m.key != 0 ? m.key : build_id(m.base, part);
      if (part.p_type != PT_LOAD) continue;
      std::uintptr_t begin = m.base + part.p_vaddr;
      if (part.p_flags & PF_X) m.code.push_back({begin, begin + part.p_memsz});
      otherwise += text(" ", part.p_vaddr, " ", part.p_memsz);
    }
    if (m.key == 0) m.key = hash_bytes(otherwise.data(), otherwise.size());
    if (!m.code.empty()) modules_.push_back(std::move(m));
  }

  /// Of a build id among these notes; 0 if there is none.
  template <class Part>
  static std::uint64_t build_id(std::uintptr_t base, const Part& notes) {
    std::size_t unit = notes.p_align == 8 ? 8 : 4;
    auto up = [unit](std::size_t n) { return (n + unit - 1) / unit * unit; };
    std::string copy = copy_of(reinterpret_cast<const char*>(base + notes.p_vaddr), notes.p_memsz);
    const char* bytes = copy.data();
    for (std::size_t at = 0; at + 12 <= notes.p_memsz;) {
      std::uint32_t head[3];  // sizes of the name and the description, type
      std::memcpy(head, bytes + at, sizeof head);
      std::size_t description = up(at + 12 + head[0]), end = up(description + head[1]);
      if (end > up(notes.p_memsz) || description + head[1] > notes.p_memsz) break;
      if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && std::memcmp(bytes + at + 12, "GNU", 4) == 0)
        return hash_bytes(bytes + description, head[1]);
      at = end;
    }
    return 0;
  }

  /// Of what the linker has put together: a sanitizer takes what lies between the variables of a
  /// program for none of ours.
  __attribute__((no_sanitize("address"))) static std::string copy_of(const char* from,
                                                                     std::size_t bytes) {
    std::string copy(bytes, '\0');
    char* to = copy.data();
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<const volatile char*>(from)[i];
    return copy;
  }

  std::vector<loaded_module> modules_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
