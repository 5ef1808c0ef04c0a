// How a program wants to be started: read from the note that farside/base/backend_choice.hpp puts in.
#pragma once

#include <optional>
#include <string>

namespace far::app {

enum class transport { smp, openmpi, mpich, other_mpi, shmem, sim, any };

/// What --backend accepts, and the back end's name in messages.
const char* name_of(transport);

/// Where a program lies, as a shell would find it.
/// Throws an error that tells "no such program" from "not executable" and "a directory".
std::string locate_program(const std::string& name);

/// Reads the note; throws if there is none, saying what kind of file it is instead.
transport transport_of(const std::string& path);

/// The same without an error; nothing where there is no note, as in a script.
std::optional<transport> noted_transport(const std::string& path);

/// Whether it is built for any back end, so that it has to be told which.
bool takes_any(const std::string& path);

/// The shared library by which a back end carries programs that are built for any (it is empty for
/// smp, which they have in themselves). Throws if it is not installed.
std::string carrier_of(transport);

/// Resolves `--backend NAME`. `mpi` means the MPI of the note, or else Open MPI.
transport transport_named(const std::string& name, const std::string& path);

}  // namespace far::app
