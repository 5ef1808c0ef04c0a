// How a program wants to be started: read from the note that farside/backend/select.hpp puts in.
#pragma once

#include <string>

namespace far::app {

enum class transport { smp, openmpi, mpich, other_mpi, shmem, sim };

/// What --backend accepts, and the back end's name in messages.
const char* name_of(transport);

/// Where a program lies, as a shell would find it.
/// Throws an error that tells "no such program" from "not executable" and "a directory".
std::string locate_program(const std::string& name);

/// Reads the note; throws if there is none, saying what kind of file it is instead.
transport transport_of(const std::string& path);

/// Resolves `--backend NAME`. `mpi` means the MPI of the note, or else Open MPI.
transport transport_named(const std::string& name, const std::string& path);

}  // namespace far::app
