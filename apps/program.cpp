#include "program.hpp"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "support.hpp"

namespace far::app {

const char* name_of(transport how) {
  switch (how) {
    case transport::smp:
      return "smp";
    case transport::openmpi:
      return "mpi (Open MPI)";
    case transport::mpich:
      return "mpi (MPICH)";
    case transport::other_mpi:
      return "mpi (an MPI that is neither Open MPI nor MPICH)";
    case transport::shmem:
      return "shmem";
    case transport::sim:
      return "sim";
    case transport::any:
      return "any";
  }
  return "?";
}

std::string locate_program(const std::string& name) {
  std::string found = find_in_path(name);
  if (!found.empty()) return found;
  struct stat info;
  if (stat(name.c_str(), &info) != 0) {
    if (errno == EACCES || errno == ENOTDIR || name.find('/') != std::string::npos)
      throw error(not_found, "no such program: '" + name + "' (" + std::strerror(errno) +
                                 "); check the path, or build it first");
    throw error(not_found, "no such program: '" + name + "' is not in PATH; write ./" + name +
                               " if it is in this directory");
  }
  if (S_ISDIR(info.st_mode))
    throw error(not_executable, "'" + name + "' is a directory, not a program; name a file in it");
  if (name.find('/') == std::string::npos && access(name.c_str(), X_OK) == 0)
    throw error(not_found, "no such program: '" + name +
                               "' is not in PATH, but it is in this directory; write ./" + name);
  throw error(not_executable,
              "'" + name + "' is not executable; if it is a program: chmod +x " + name);
}

namespace {

/// One read of `count` Ts at `offset`; fails quietly, as files may be cut off.
template <typename T>
std::optional<std::vector<T>> read_at(std::ifstream& file, std::uint64_t offset,
                                      std::size_t count) {
  std::vector<T> result(count);
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(result.data()),
            static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) return std::nullopt;
  return result;
}

/// The description in a section of ELF notes:
///   u32 name size | u32 description size | u32 type | name, padded to 4 | description, padded
std::optional<std::string> description_in(const std::vector<char>& notes) {
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data() + at, sizeof header);
    std::size_t name = at + sizeof header;
    std::size_t description = name + ((std::size_t{header.n_namesz} + 3) & ~std::size_t{3});
    std::size_t end = description + ((std::size_t{header.n_descsz} + 3) & ~std::size_t{3});
    if (end > notes.size()) break;
    if (std::string(notes.data() + name, strnlen(notes.data() + name, header.n_namesz)) ==
        "Farside")
      return std::string(notes.data() + description,
                         strnlen(notes.data() + description, header.n_descsz));
    at = end;
  }
  return std::nullopt;
}

enum class file_kind { unreadable, script, foreign, elf };

struct inspected {
  file_kind kind = file_kind::unreadable;
  std::optional<std::string> note;
};

inspected inspect(const std::string& path) {
  inspected result;
  std::ifstream file(path, std::ios::binary);
  auto magic = read_at<char>(file, 0, 2);
  if (!magic) return result;
  result.kind = (*magic)[0] == '#' && (*magic)[1] == '!' ? file_kind::script : file_kind::foreign;
  auto header = read_at<Elf64_Ehdr>(file, 0, 1);
  if (!header || std::memcmp(header->front().e_ident, ELFMAG, SELFMAG) != 0 ||
      header->front().e_ident[EI_CLASS] != ELFCLASS64)
    return result;
  result.kind = file_kind::elf;
  const Elf64_Ehdr& elf = header->front();
  if (elf.e_shentsize != sizeof(Elf64_Shdr) || elf.e_shoff == 0) return result;
  auto sections = read_at<Elf64_Shdr>(file, elf.e_shoff, elf.e_shnum);
  if (!sections) return result;
  for (const Elf64_Shdr& section : *sections) {
    if (section.sh_type != SHT_NOTE || section.sh_size > (1u << 20)) continue;
    auto bytes = read_at<char>(file, section.sh_offset, section.sh_size);
    if (bytes) result.note = description_in(*bytes);
    if (result.note) break;
  }
  return result;
}

std::optional<transport> transport_in(const std::optional<std::string>& note) {
  if (!note) return std::nullopt;
  if (*note == "smp") return transport::smp;
  if (*note == "mpi openmpi") return transport::openmpi;
  if (*note == "mpi mpich") return transport::mpich;
  if (*note == "mpi other") return transport::other_mpi;
  if (note->starts_with("shmem")) return transport::shmem;
  if (*note == "sim") return transport::sim;
  if (*note == "any") return transport::any;
  return std::nullopt;
}

}  // namespace

transport transport_of(const std::string& path) {
  inspected program = inspect(path);
  if (auto how = transport_in(program.note)) return *how;
  std::string advice = "; say how to start it: --backend smp, mpi, shmem or sim";
  if (program.note)
    throw error(usage_error, "'" + path + "' was built for the back end '" + *program.note +
                                 "', which this farside does not know" + advice);
  switch (program.kind) {
    case file_kind::script:
      throw error(usage_error, "'" + path +
                                   "' is a script, and a script does not say which back end the "
                                   "program it starts was built for" +
                                   advice);
    case file_kind::elf:
      throw error(usage_error,
                  "'" + path +
                      "' carries no note of a back end: it includes no farside header, "
                      "or was stripped of its notes" +
                      advice);
    case file_kind::foreign:
      throw error(
          usage_error,
          "'" + path + "' is no 64-bit ELF program, so its back end cannot be read" + advice);
    case file_kind::unreadable:
      break;
  }
  throw error(usage_error, "'" + path + "' cannot be read, so its back end is unknown" + advice);
}

std::optional<transport> noted_transport(const std::string& path) {
  return transport_in(inspect(path).note);
}

bool takes_any(const std::string& path) { return noted_transport(path) == transport::any; }

std::string carrier_of(transport how) {
  std::string name;
  switch (how) {
    case transport::smp:
      return "";
    case transport::mpich:
      name = "farside_mpich.so";
      break;
    case transport::shmem:
      name = "farside_shmem.so";
      break;
    case transport::sim:
      name = "farside_sim.so";
      break;
    default:
      name = "farside_openmpi.so";
  }
  std::string path = find_companion(name);
  if (path.empty())
    throw error(not_found, "the program is built for any back end, and what carries it by " +
                               std::string(name_of(how)) + ", " + name + ", is neither in " +
                               self_directory() + " nor in " + self_directory() +
                               "/../libexec/farside; build farside where that back end's compiler "
                               "is installed ('farside doctor' names it), or choose another "
                               "--backend");
  return path;
}

transport transport_named(const std::string& name, const std::string& path) {
  if (name == "smp") return transport::smp;
  if (name == "openmpi") return transport::openmpi;
  if (name == "mpich") return transport::mpich;
  if (name == "shmem") return transport::shmem;
  if (name == "sim") return transport::sim;
  if (name == "mpi") {
    auto how = transport_in(inspect(path).note);
    bool names_an_mpi =
        how == transport::openmpi || how == transport::mpich || how == transport::other_mpi;
    return names_an_mpi ? *how : transport::openmpi;
  }
  throw error(usage_error,
              "--backend " + name +
                  ": there is no such back end; it is one of smp, mpi, openmpi, mpich, shmem, sim");
}

}  // namespace far::app
