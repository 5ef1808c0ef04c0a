// farside_guard.so: keeps what an MPI opens to the user who started the job, and to this machine.
//
// The MPIs have no setting for some things. mpirun listens on all addresses of the machine, where
// any stranger's connection ends or hangs the job. Shared memory of System V gets the mode 0660, so
// that all users of one's group may write it. `farside run` preloads this library into mpirun and
// into the ranks. It replaces
//
//   bind     to no address in particular: of the loopback interface, in jobs on one host
//   shmget   of an MPI, with a mode for the group or for others: for the user alone
//   mkstemp  of MPICH, for memory that ranks share: writes the name down, for the launcher to
//            remove the file if a rank is killed before MPICH does
//
// In mpirun it removes itself from LD_PRELOAD as soon as it is loaded. In a rank it stays there
// until the program makes its far::runtime, so that it passes through shells and debuggers.
//
// FARSIDE_GUARD_LIST is the file for those names. FARSIDE_GUARD says how much is wanted: "starter",
// in mpirun of a job on one host, every bind; "server", the same, and processes that mpirun starts
// inherit the library; "rank", in a rank of such a job, binds that an MPI calls, while those of the
// program stay what they are; otherwise no bind.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

enum class extent { no_bind, binds_of_mpi, all_binds };
extent wanted = extent::no_bind;

constexpr const char* variable = "FARSIDE_GUARD";
constexpr const char* own_name = "farside_guard.so";

/// LD_PRELOAD without this library; others keep their place. The library uses C functions alone: it
/// must not bring a C++ library into a process that has none.
void leave_environment() {
  const char* list = std::getenv("LD_PRELOAD");
  char* rest = list ? static_cast<char*>(std::calloc(std::strlen(list) + 2, 1)) : nullptr;
  for (const char* at = list; rest && *at != '\0';) {
    std::size_t length = std::strcspn(at, " :");
    const char* own = std::strstr(at, own_name);
    if (length != 0 && !(own && own < at + length)) {
      if (*rest != '\0') std::strcat(rest, ":");
      std::strncat(rest, at, length);
    }
    at += length + (at[length] != '\0');
  }
  if (rest && *rest != '\0')
    setenv("LD_PRELOAD", rest, 1);
  else
    unsetenv("LD_PRELOAD");
  std::free(rest);
  unsetenv(variable);
}

[[gnu::constructor]] void arrive() {
  const char* value = std::getenv(variable);
  if (!value) value = "";
  bool starter = std::strcmp(value, "starter") == 0;
  if (starter || std::strcmp(value, "server") == 0) wanted = extent::all_binds;
  if (std::strcmp(value, "rank") == 0) wanted = extent::binds_of_mpi;
  if (starter) leave_environment();
}

/// Whether the code at this address belongs to Open MPI, MPICH, or what they communicate by.
bool is_of_mpi(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0 || !info.dli_fname) return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const char* name = slash ? slash + 1 : info.dli_fname;
  for (const char* start : {"mca_", "libopen-", "libmpi", "libmpich", "libpmix", "libuct", "libucs",
                            "libucp", "libfabric"})
    if (std::strncmp(name, start, std::strlen(start)) == 0) return true;
  return false;
}

int bind_to(int socket, const void* address, socklen_t size) {
  return static_cast<int>(syscall(SYS_bind, socket, address, size));
}

/// One line to the file FARSIDE_GUARD_LIST. By one write, so that lines of several ranks do not
/// mix. If that fails the file is not removed when this process is killed.
void write_down(const char* what, const char* path) {
  const char* list = std::getenv("FARSIDE_GUARD_LIST");
  int file = list ? open(list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  char line[512] = "";
  std::strncat(line, what, 16);
  std::strncat(line, path, sizeof line - 32);
  std::strcat(line, "\n");
  ssize_t written = write(file, line, std::strlen(line));
  static_cast<void>(written);
  close(file);
}

}  // namespace

extern "C" {

/// The name is written down before the file is made. A process may be killed at any moment.
int mkstemp(char* pattern) {
  std::size_t length = std::strlen(pattern);
  if (length < 6 || !std::strstr(pattern, "/mpich_shar_tmp") ||
      !is_of_mpi(__builtin_return_address(0))) {
    auto real = reinterpret_cast<int (*)(char*)>(dlsym(RTLD_NEXT, "mkstemp"));
    return real(pattern);
  }
  constexpr char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (int attempt = 0; attempt < 100; ++attempt) {
    unsigned char random[6];
    if (getrandom(random, sizeof random, 0) != sizeof random) return -1;
    for (std::size_t i = 0; i < sizeof random; ++i)
      pattern[length - sizeof random + i] = letters[random[i] % (sizeof letters - 1)];
    write_down("made ", pattern);
    int file = open(pattern, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file >= 0) return file;
    int reason = errno;
    write_down("not ", pattern);  // it is somebody else's
    errno = reason;
    if (reason != EEXIST) return -1;
  }
  return -1;
}

int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  bool ours = wanted == extent::all_binds ||
              (wanted == extent::binds_of_mpi && is_of_mpi(__builtin_return_address(0)));
  if (ours && address && address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in near;
    std::memcpy(&near, address, sizeof near);
    if (near.sin_addr.s_addr == INADDR_ANY) near.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind_to(socket, &near, sizeof near);
  }
  if (ours && address && address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 near;
    std::memcpy(&near, address, sizeof near);
    bool any = IN6_IS_ADDR_UNSPECIFIED(&near.sin6_addr);
    if (any) near.sin6_addr = in6addr_loopback;
    int result = bind_to(socket, &near, sizeof near);
    if (result == 0 || !any || errno != EADDRNOTAVAIL) return result;
    // A machine without ::1: 127.0.0.1 by way of IPv6, where the socket takes both.
    near.sin6_addr = in6addr_any;
    const unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    std::memcpy(&near.sin6_addr, mapped, sizeof mapped);
    return bind_to(socket, &near, sizeof near);
  }
  return bind_to(socket, address, size);
}

int shmget(key_t key, size_t size, int flags) noexcept {
  constexpr int of_others = 0077;
  if (is_of_mpi(__builtin_return_address(0))) flags &= ~of_others;
  return static_cast<int>(syscall(SYS_shmget, key, size, flags));
}

}  // extern "C"
