// Molecules of hydrogen and helium, and their functions: sums of s Gaussians around the nuclei.
// Lengths are in bohr, energies in hartree.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace scf_program {

using place = std::array<double, 3>;

struct atom {
  int charge;
  place at;
  double zeta;  ///< how tight STO-3G functions are around it
};

struct molecule {
  std::string name;
  std::vector<atom> atoms;
  int electrons = 0;
  /// In STO-3G, as the literature has it: Szabo and Ostlund, Modern Quantum Chemistry, section 3.5,
  /// and tables of atoms.
  std::optional<double> known_energy{};
};

/// A sum of normalised Gaussians around one place.
struct function {
  place at;
  std::vector<double> exponents, coefficients;
};

/// h2, he, heh+; throws wrong_option.
molecule named_molecule(const std::string& name);
/// n hydrogen atoms in a row.
molecule chain_of(std::size_t n, double spacing);
/// Of an .xyz file, whose lengths are in angstrom. Throws far::error.
molecule molecule_of_file(const std::string& path, int charge);
/// The functions of all atoms, by "sto-3g" or "6-31g".
std::vector<function> functions_of(const molecule& m, const std::string& basis);
/// What the nuclei repel each other with.
double nuclear_energy(const molecule& m);

}  // namespace scf_program
