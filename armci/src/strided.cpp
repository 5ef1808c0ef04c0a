// Strided and vector transfers.
#include "transfers.hpp"

namespace armci {
namespace {

/// The same block on two sides, for copies within this process.
struct rows {
  const int *from_strides, *to_strides, *count;
  int levels;

  /// visit(place at the source, place at the target) for each row of count[0] bytes.
  template <class Visit>
  void for_each(Visit visit) const {
    std::ptrdiff_t at[far::level_list::most] = {}, from = 0, to = 0;
    for (int i = 0; i <= levels; ++i)
      if (count[i] <= 0) return;
    for (;;) {
      visit(from, to);
      int i = 1;
      for (; i <= levels; ++i) {
        from += from_strides[i - 1], to += to_strides[i - 1];
        if (++at[i] < count[i]) break;
        from -= std::ptrdiff_t{from_strides[i - 1]} * count[i];
        to -= std::ptrdiff_t{to_strides[i - 1]} * count[i];
        at[i] = 0;
      }
      if (i > levels) return;
    }
  }
};

struct strided_call {
  const int *local_strides, *far_strides, *count;
  int levels, process;

  template <class T>
  block<T> shape() const {
    return block<T>(far_strides, local_strides, count, levels);
  }
};

int put(const void* from, void* to, const strided_call& how, armci_hdl_t* handle, bool now) {
  library& lib = here();
  begin_with(handle);
  auto b = how.shape<std::byte>();
  if (b.empty) return lib.check_process(how.process), 0;
  auto* source = static_cast<const std::byte*>(from);
  if (lib.is_private(to, how.process)) {
    copy_block(static_cast<const char*>(from), how.local_strides, static_cast<char*>(to),
               how.far_strides, how.count, how.levels);
    return 0;
  }
  auto at = b.place(lib, to, how.process);
  if (now || lib.coherent()) return lib.order().put_strided(at, source, b.shape), 0;
  auto lowest = at + b.low;
  lib.order().settle(lowest, static_cast<std::size_t>(b.bytes));
  keep(far::async_put_strided(at, source, b.shape), how.process, handle);
  lib.order().note_put(lowest, static_cast<std::size_t>(b.bytes));
  return 0;
}

int get(const void* from, void* to, const strided_call& how, armci_hdl_t* handle, bool now) {
  library& lib = here();
  begin_with(handle);
  auto b = how.shape<std::byte>();
  if (b.empty) return lib.check_process(how.process), 0;
  auto* target = static_cast<std::byte*>(to);
  if (lib.is_private(from, how.process)) {
    copy_block(static_cast<const char*>(from), how.far_strides, static_cast<char*>(to),
               how.local_strides, how.count, how.levels);
    return 0;
  }
  auto at = b.place(lib, from, how.process);
  if (now || lib.coherent()) return far::get_strided(at, target, b.shape), 0;
  keep(far::async_get_strided(at, target, b.shape), how.process, handle);
  return 0;
}

int accumulate(int type, const void* scale, const void* from, void* to, const strided_call& how,
               armci_hdl_t* handle, bool now) {
  library& lib = here();
  begin_with(handle);
  return with_type(type, [&]<class T> {
    auto b = how.shape<T>();
    if (b.empty) return lib.check_process(how.process), 0;
    auto* source = static_cast<const T*>(from);
    auto at = b.place(lib, to, how.process);
    T by = scale_of<T>(scale);
    if (now || lib.coherent()) return lib.order().accumulate_strided(at, source, b.shape, by), 0;
    auto lowest = far::ptr<std::byte>::from_raw(at.raw()) + b.low;
    lib.order().settle(lowest, static_cast<std::size_t>(b.bytes));
    keep(far::async_accumulate_strided(at, source, b.shape, by), how.process, handle);
    lib.order().note_put(lowest, static_cast<std::size_t>(b.bytes));
    return 0;
  });
}

/// Calls visit(source, target, bytes) for each piece.
template <class Visit>
void for_each_piece(const armci_giov_t* lists, int length, Visit visit) {
  for (int i = 0; i < length; ++i) {
    if (lists[i].bytes < 0) raise("a piece has ", lists[i].bytes, " bytes.");
    for (int j = 0; j < lists[i].ptr_array_len; ++j)
      visit(lists[i].src_ptr_array[j], lists[i].dst_ptr_array[j], lists[i].bytes);
  }
}

template <class T>
std::vector<far::put_piece<T>> pieces_to(const armci_giov_t* lists, int length, int process) {
  library& lib = here();
  std::vector<far::put_piece<T>> result;
  for_each_piece(lists, length, [&](const void* from, void* to, int bytes) {
    if (bytes % static_cast<int>(sizeof(T)) != 0)
      raise("a piece of ", bytes, " bytes holds no whole elements, which have ", sizeof(T), ".");
    result.push_back({lib.place<T>(to, process, bytes), static_cast<const T*>(from),
                      static_cast<std::size_t>(bytes) / sizeof(T)});
  });
  return result;
}

template <class T>
void settle(const std::vector<far::put_piece<T>>& pieces) {
  for (const auto& piece : pieces) here().order().settle(piece.to, piece.n);
}
template <class T>
void note(const std::vector<far::put_piece<T>>& pieces) {
  for (const auto& piece : pieces) here().order().note_put(piece.to, piece.n);
}

int put_list(const armci_giov_t* lists, int length, int process, armci_hdl_t* handle, bool now) {
  library& lib = here();
  begin_with(handle);
  auto pieces = pieces_to<std::byte>(lists, length, process);
  if (now || lib.coherent()) return lib.order().put_pieces<std::byte>(pieces), 0;
  settle(pieces);
  keep(far::async_put_pieces<std::byte>(pieces), process, handle);
  note(pieces);
  return 0;
}

int get_list(const armci_giov_t* lists, int length, int process, armci_hdl_t* handle, bool now) {
  library& lib = here();
  begin_with(handle);
  std::vector<far::get_piece<std::byte>> pieces;
  for_each_piece(lists, length, [&](const void* from, void* to, int bytes) {
    pieces.push_back({lib.place(from, process, bytes), static_cast<std::byte*>(to),
                      static_cast<std::size_t>(bytes)});
  });
  if (now || lib.coherent()) return far::get_pieces<std::byte>(pieces), 0;
  keep(far::async_get_pieces<std::byte>(pieces), process, handle);
  return 0;
}

int accumulate_list(int type, const void* scale, const armci_giov_t* lists, int length, int process,
                    armci_hdl_t* handle, bool now) {
  library& lib = here();
  begin_with(handle);
  return with_type(type, [&]<class T> {
    auto pieces = pieces_to<T>(lists, length, process);
    T by = scale_of<T>(scale);
    if (now || lib.coherent()) return lib.order().accumulate_pieces<T>(pieces, by), 0;
    settle(pieces);
    keep(far::async_accumulate_pieces<T>(pieces, by), process, handle);
    note(pieces);
    return 0;
  });
}

}  // namespace

void copy_block(const char* from, const int* from_strides, char* to, const int* to_strides,
                const int* count, int levels) {
  rows{from_strides, to_strides, count, levels}.for_each([&](std::ptrdiff_t a, std::ptrdiff_t b) {
    std::memmove(to + b, from + a, static_cast<std::size_t>(count[0]));
  });
}

}  // namespace armci

using armci::call;

extern "C" {

int PARMCI_PutS(void* from, int from_strides[], void* to, int to_strides[], int count[], int levels,
                int process) {
  return call("ARMCI_PutS", [&] {
    return armci::put(from, to, {from_strides, to_strides, count, levels, process}, nullptr, true);
  });
}
int PARMCI_GetS(void* from, int from_strides[], void* to, int to_strides[], int count[], int levels,
                int process) {
  return call("ARMCI_GetS", [&] {
    return armci::get(from, to, {to_strides, from_strides, count, levels, process}, nullptr, true);
  });
}
int PARMCI_AccS(int type, void* scale, void* from, int from_strides[], void* to, int to_strides[],
                int count[], int levels, int process) {
  return call("ARMCI_AccS", [&] {
    return armci::accumulate(type, scale, from, to,
                             {from_strides, to_strides, count, levels, process}, nullptr, true);
  });
}
int PARMCI_NbPutS(void* from, int from_strides[], void* to, int to_strides[], int count[],
                  int levels, int process, armci_hdl_t* handle) {
  return call("ARMCI_NbPutS", [&] {
    return armci::put(from, to, {from_strides, to_strides, count, levels, process}, handle, false);
  });
}
int PARMCI_NbGetS(void* from, int from_strides[], void* to, int to_strides[], int count[],
                  int levels, int process, armci_hdl_t* handle) {
  return call("ARMCI_NbGetS", [&] {
    return armci::get(from, to, {to_strides, from_strides, count, levels, process}, handle, false);
  });
}
int PARMCI_NbAccS(int type, void* scale, void* from, int from_strides[], void* to, int to_strides[],
                  int count[], int levels, int process, armci_hdl_t* handle) {
  return call("ARMCI_NbAccS", [&] {
    return armci::accumulate(type, scale, from, to,
                             {from_strides, to_strides, count, levels, process}, handle, false);
  });
}

int PARMCI_PutV(armci_giov_t* pieces, int length, int process) {
  return call("ARMCI_PutV",
              [&] { return armci::put_list(pieces, length, process, nullptr, true); });
}
int PARMCI_GetV(armci_giov_t* pieces, int length, int process) {
  return call("ARMCI_GetV",
              [&] { return armci::get_list(pieces, length, process, nullptr, true); });
}
int PARMCI_AccV(int type, void* scale, armci_giov_t* pieces, int length, int process) {
  return call("ARMCI_AccV", [&] {
    return armci::accumulate_list(type, scale, pieces, length, process, nullptr, true);
  });
}
int PARMCI_NbPutV(armci_giov_t* pieces, int length, int process, armci_hdl_t* handle) {
  return call("ARMCI_NbPutV",
              [&] { return armci::put_list(pieces, length, process, handle, false); });
}
int PARMCI_NbGetV(armci_giov_t* pieces, int length, int process, armci_hdl_t* handle) {
  return call("ARMCI_NbGetV",
              [&] { return armci::get_list(pieces, length, process, handle, false); });
}
int PARMCI_NbAccV(int type, void* scale, armci_giov_t* pieces, int length, int process,
                  armci_hdl_t* handle) {
  return call("ARMCI_NbAccV", [&] {
    return armci::accumulate_list(type, scale, pieces, length, process, handle, false);
  });
}

// Named by what happens to the buffer: it is written, or read.
void armci_write_strided(void* from, int levels, int strides[], int count[], char* to) {
  armci::rows{strides, strides, count, levels}.for_each([&](std::ptrdiff_t at, std::ptrdiff_t) {
    std::memcpy(to, static_cast<char*>(from) + at, static_cast<std::size_t>(count[0]));
    to += count[0];
  });
}
void armci_read_strided(void* to, int levels, int strides[], int count[], char* from) {
  armci::rows{strides, strides, count, levels}.for_each([&](std::ptrdiff_t at, std::ptrdiff_t) {
    std::memcpy(static_cast<char*>(to) + at, from, static_cast<std::size_t>(count[0]));
    from += count[0];
  });
}

}  // extern "C"

FARSIDE_ARMCI_NAME(PutS)
FARSIDE_ARMCI_NAME(GetS)
FARSIDE_ARMCI_NAME(AccS)
FARSIDE_ARMCI_NAME(NbPutS)
FARSIDE_ARMCI_NAME(NbGetS)
FARSIDE_ARMCI_NAME(NbAccS)
FARSIDE_ARMCI_NAME(PutV)
FARSIDE_ARMCI_NAME(GetV)
FARSIDE_ARMCI_NAME(AccV)
FARSIDE_ARMCI_NAME(NbPutV)
FARSIDE_ARMCI_NAME(NbGetV)
FARSIDE_ARMCI_NAME(NbAccV)
