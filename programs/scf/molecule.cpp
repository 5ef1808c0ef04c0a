#include "molecule.hpp"

#include <farside/base/error.hpp>
#include <toolkit/option_reader.hpp>

#include <cmath>
#include <fstream>
#include <numbers>
#include <sstream>

namespace scf_program {

namespace {

constexpr double zeta_of_hydrogen = 1.24, zeta_of_helium = 1.69;
constexpr double bohr = 0.529177210903;  // angstrom

atom make_atom(int charge, const place& at) {
  return {charge, at, charge == 1 ? zeta_of_hydrogen : zeta_of_helium};
}

double distance(const place& a, const place& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// Makes the integral of the square 1.
function normalised(function f) {
  double square = 0;
  for (std::size_t i = 0; i < f.exponents.size(); ++i)
    f.coefficients[i] *= std::pow(2 * f.exponents[i] / std::numbers::pi, 0.75);
  for (std::size_t i = 0; i < f.exponents.size(); ++i)
    for (std::size_t j = 0; j < f.exponents.size(); ++j)
      square += f.coefficients[i] * f.coefficients[j] *
                std::pow(std::numbers::pi / (f.exponents[i] + f.exponents[j]), 1.5);
  for (double& c : f.coefficients) c /= std::sqrt(square);
  return f;
}

}  // namespace

molecule named_molecule(const std::string& name) {
  if (name == "h2") {
    molecule m = chain_of(2, 1.4);
    m.name = "H2 at 1.4 bohr", m.known_energy = -1.1167;
    return m;
  }
  if (name == "he") return {"He", {make_atom(2, {})}, 2, -2.8078};
  if (name == "heh+")
    return {"HeH+ at 1.4632 bohr", {{2, {}, 2.0925}, {1, {0, 0, 1.4632}, 1.24}}, 2, -2.8607};
  throw toolkit::wrong_option("there is no molecule " + name +
                              "; there are h2, he and heh+, --chain N and --xyz FILE");
}

molecule chain_of(std::size_t n, double spacing) {
  molecule m{"a chain of " + std::to_string(n) + " H", {}, static_cast<int>(n)};
  for (std::size_t i = 0; i < n; ++i)
    m.atoms.push_back(make_atom(1, {0, 0, spacing * static_cast<double>(i)}));
  return m;
}

molecule molecule_of_file(const std::string& path, int charge) {
  auto refuse = [&](const auto&... why) { throw far::error(far::text("farside: ", path, why...)); };
  std::ifstream file(path);
  if (!file) refuse(": cannot open it");
  std::string line;
  std::size_t n = 0, number = 1;
  if (!std::getline(file, line) || !(std::istringstream(line) >> n) || n == 0 || n > 1000)
    refuse(": line 1 is not the number of atoms, from 1 to 1000");
  std::getline(file, line), ++number;
  molecule m{path, {}, -charge};
  while (m.atoms.size() < n) {
    ++number;
    if (!std::getline(file, line))
      refuse(": it ends after ", m.atoms.size(), " of the ", n, " atoms that its first line says");
    std::istringstream words(line);
    std::string element;
    place at{};
    if (!(words >> element >> at[0] >> at[1] >> at[2]))
      refuse(": line ", number, " is not an element and three coordinates in angstrom");
    if (element != "H" && element != "He")
      refuse(": line ", number, " has the element ", element,
             "; this program has s functions only, for H and He");
    for (double& x : at) x /= bohr;
    for (const atom& other : m.atoms)
      if (distance(other.at, at) < 0.1) refuse(": line ", number, " has an atom where another is");
    m.atoms.push_back(make_atom(element == "H" ? 1 : 2, at));
    m.electrons += m.atoms.back().charge;
  }
  return m;
}

std::vector<function> functions_of(const molecule& m, const std::string& basis) {
  std::vector<function> result;
  for (const atom& a : m.atoms) {
    if (basis == "sto-3g") {
      function f{
          a.at, {2.227660584, 0.405771156, 0.109818}, {0.154328967, 0.535328142, 0.444634542}};
      for (double& e : f.exponents) e *= a.zeta * a.zeta;
      result.push_back(normalised(f));
    } else if (a.charge == 1) {
      result.push_back(normalised({a.at,
                                   {18.73113696, 2.825394365, 0.6401216923},
                                   {0.03349460434, 0.2347269535, 0.8137573261}}));
      result.push_back(normalised({a.at, {0.1612777588}, {1}}));
    } else {
      result.push_back(normalised(
          {a.at, {38.421634, 5.77803, 1.241774}, {0.04013973935, 0.261246097, 0.7931846246}}));
      result.push_back(normalised({a.at, {0.297964}, {1}}));
    }
  }
  return result;
}

double nuclear_energy(const molecule& m) {
  double sum = 0;
  for (std::size_t i = 0; i < m.atoms.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      sum += m.atoms[i].charge * m.atoms[j].charge / distance(m.atoms[i].at, m.atoms[j].at);
  return sum;
}

}  // namespace scf_program
