// A user-level thread: a stack, and what the CPU must keep while another one runs.
//
// Switching saves what the calling convention asks a function to keep, and what the C++ run time
// keeps by thread: the exceptions that are being handled or thrown.
#pragma once

#include <farside/base/error.hpp>

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>

// void farside_switch(void** save, void* next): pushes the registers, saves the stack pointer to
// *save, takes `next` for the stack pointer and pops the registers that lie there.
// farside_start is where the first switch to a fibre returns to: it calls what lies in the
// registers. One copy a program: a group that the linker folds, as for inline functions.
#if defined(__aarch64__)
asm(R"(
.pushsection .text.farside_switch,"axG",@progbits,farside_switch,comdat
.weak farside_switch
.hidden farside_switch
.type farside_switch, %function
.p2align 4
farside_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size farside_switch, .-farside_switch
.weak farside_start
.hidden farside_start
farside_start:
  mov x0, x19
  blr x20
  brk #1
.popsection
)");
#elif defined(__x86_64__)
asm(R"(
.pushsection .text.farside_switch,"axG",@progbits,farside_switch,comdat
.weak farside_switch
.hidden farside_switch
.type farside_switch, @function
.p2align 4
farside_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size farside_switch, .-farside_switch
.weak farside_start
.hidden farside_start
farside_start:
  movq %rbx, %rdi
  callq *%r12
  ud2
.popsection
)");
#else
#error "farside: the sim back end knows how to switch stacks on x86-64 and arm64 only."
#endif
extern "C" void farside_switch(void** save, void* next);
extern "C" void farside_start();

// The C++ run time's account of exceptions, one a thread: what is being handled, and how many are
// under way. The ABI fixes its layout.
extern "C" void* __cxa_get_globals() noexcept;

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

class fibre {
 public:
  using entry = void (*)(void*);

  fibre() = default;
  fibre(fibre&& other) noexcept { *this = std::move(other); }
  fibre& operator=(fibre&& other) noexcept {
    std::swap(stack_, other.stack_);
    std::swap(size_, other.size_);
    std::swap(top_, other.top_);
    std::swap(exceptions_, other.exceptions_);
    return *this;
  }
  ~fibre() {
    if (stack_ != nullptr) munmap(stack_, size_);
  }

  /// Will call `run(argument)`, which never returns, on a stack of its own when first resumed.
  void prepare(std::size_t stack_bytes, entry run, void* argument);

  /// Leaves `from` and goes on where `to` was left.
  static void resume(fibre& from, fibre& to) {
    auto* kept = static_cast<exceptions*>(__cxa_get_globals());
    from.exceptions_ = *kept;
    *kept = to.exceptions_;
    farside_switch(&from.top_, to.top_);
  }

 private:
  struct exceptions {
    void* handled = nullptr;
    unsigned uncaught = 0;
  };
  static constexpr std::size_t guard = 65536;  ///< a page or more, on all machines

  char* stack_ = nullptr;
  std::size_t size_ = 0;
  void* top_ = nullptr;
  exceptions exceptions_;
};

inline void fibre::prepare(std::size_t stack_bytes, entry run, void* argument) {
  if (stack_ == nullptr) {
    size_ = stack_bytes + guard;
    void* at = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      raise("cannot map ", size_, " bytes for the stack of a rank: ", std::strerror(errno),
            ". Ask for fewer ranks.");
    stack_ = static_cast<char*>(at);
    mprotect(stack_, guard, PROT_NONE);
  }
  exceptions_ = {};
  auto* top = reinterpret_cast<std::uint64_t*>(stack_ + size_);
  *--top = 0;
  *--top = 0;
#if defined(__aarch64__)
  top -= 20;
  std::memset(top, 0, 160);
  top[0] = reinterpret_cast<std::uint64_t>(argument);         // x19
  top[1] = reinterpret_cast<std::uint64_t>(run);              // x20
  top[11] = reinterpret_cast<std::uint64_t>(&farside_start);  // x30: where the switch returns to
#else
  *--top = reinterpret_cast<std::uint64_t>(&farside_start);  // where the switch returns to
  *--top = 0;                                                // rbp
  *--top = reinterpret_cast<std::uint64_t>(argument);        // rbx
  *--top = reinterpret_cast<std::uint64_t>(run);             // r12
  *--top = 0;
  *--top = 0;
  *--top = 0;
  *--top = 0x037f'0000'1f80;  // the control words of the floating-point units at the start
#endif
  top_ = top;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
