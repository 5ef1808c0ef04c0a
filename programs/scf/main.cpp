// The self-consistent field of a small molecule.
#include "fock.hpp"

#include <common/run_program.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace scf_program {

namespace {

constexpr const char* help = R"(usage: farside scf [-n RANKS] [options] [h2|he|heh+]

The energy of a molecule of hydrogen and helium by the restricted Hartree-Fock method, as programs of chemistry do it:
density and Fock matrix are global arrays. A rank takes the next task from a counter, gets blocks of the density,
computes integrals of s Gaussians, and accumulates blocks of the Fock matrix.

Options:

      --chain N          N hydrogen atoms in a row, an even number (12, unless a molecule is named)
      --spacing R        between them, in bohr (1.8)
      --xyz FILE         a molecule from a file, in angstrom
      --charge Q         of that molecule (0)
      --basis sto-3g|6-31g    functions around each atom (sto-3g)
      --block B          functions in a block (4)
      --iterations N     at most (100)
      --verify           rank 0 does it once more, alone, with all integrals in memory; energies must agree to 1e-9
      --json             prints all figures as JSON

)";

struct request {
  std::string name, file, basis = "sto-3g";
  std::size_t chain = 12, block = 4, iterations = 100;
  double spacing = 1.8;
  int charge = 0;
  bool verify = false, json = false, help = false, chained = false;
};

request parse(const std::vector<std::string>& words) {
  request result;
  toolkit::option_reader in(words);
  while (in.next()) {
    if (in.is_operand()) {
      if (!result.name.empty())
        throw toolkit::wrong_option("two molecules, " + result.name + " and " + in.text());
      result.name = in.text();
    } else if (in.is("-h", "--help")) {
      in.no_value(), result.help = true;
    } else if (in.is("--chain")) {
      result.chain = toolkit::whole_number(in.name(), in.value(), 2, 200), result.chained = true;
    } else if (in.is("--spacing")) {
      result.spacing = toolkit::real_number(in.name(), in.value(), 0.2, 1000);
    } else if (in.is("--xyz")) {
      result.file = in.value("a file");
    } else if (in.is("--charge")) {
      result.charge = static_cast<int>(toolkit::real_number(in.name(), in.value(), -100, 100));
    } else if (in.is("--basis")) {
      result.basis = in.value("sto-3g or 6-31g");
      if (result.basis != "sto-3g" && result.basis != "6-31g")
        throw toolkit::wrong_option("option --basis: '" + result.basis +
                                    "' is neither sto-3g nor 6-31g");
    } else if (in.is("--block")) {
      result.block = toolkit::whole_number(in.name(), in.value(), 1, 64);
    } else if (in.is("--iterations")) {
      result.iterations = toolkit::whole_number(in.name(), in.value(), 1, 10'000);
    } else if (in.is("--verify")) {
      in.no_value(), result.verify = true;
    } else if (in.is("--json")) {
      in.no_value(), result.json = true;
    } else {
      programs::refuse_option(in.name(),
                              {"--chain", "--spacing", "--xyz", "--charge", "--basis", "--block",
                               "--iterations", "--verify", "--json", "--help"});
    }
  }
  if (!result.name.empty() + !result.file.empty() + result.chained > 1)
    throw toolkit::wrong_option("a name, --chain and --xyz are three molecules; give one");
  return result;
}

molecule molecule_of(const request& asked) {
  molecule m = !asked.file.empty()   ? molecule_of_file(asked.file, asked.charge)
               : !asked.name.empty() ? named_molecule(asked.name)
                                     : chain_of(asked.chain, asked.spacing);
  if (m.electrons <= 0 || m.electrons % 2 != 0)
    throw far::error(far::text("farside: ", m.name, " has ", m.electrons,
                               " electrons; this method takes pairs of them. Give another charge"));
  if (asked.basis != "sto-3g") m.known_energy.reset();
  return m;
}

int run(const std::vector<std::string>& words) {
  const request asked = parse(words);
  if (asked.help) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  // Read once, and by all: a file that one rank cannot open is said by that one.
  const molecule m = molecule_of(asked);
  std::unique_ptr<system> s;
  const double preparing = programs::timed([&] { s = std::make_unique<system>(m, asked.basis); });
  if (static_cast<std::size_t>(m.electrons) > 2 * s->size())
    throw far::error(far::text("farside: ", m.name, " has ", m.electrons, " electrons, and ",
                               s->size(), " functions hold twice as many at most"));
  if (asked.verify && s->size() > 40)
    throw far::error(far::text("farside: --verify keeps all integrals of ", s->size(),
                               " functions on one rank; it does so for 40 at most"));
  parallel_fock fock(*s, asked.block);
  outcome found;
  const double all = programs::timed(
      [&] { found = solve(*s, asked.iterations, [&](const square& d) { return fock(d); }); });

  programs::rank_figures figures;
  figures.seconds("preparing", preparing);
  figures.seconds("tasks", fock.working);
  figures.seconds("gets", fock.in_gets);
  figures.seconds("accumulates", fock.in_sums);
  figures.seconds("waiting", fock.waiting);
  figures.count("tasks done", fock.tasks_done);
  figures.count("integrals", fock.integrals);
  outcome alone;
  if (asked.verify && far::rank() == 0) alone = solve(*s, asked.iterations, all_integrals(*s));
  alone = far::broadcast(alone, 0);

  if (asked.json) {
    far::json_writer out;
    out.begin_object();
    out.key("molecule").value(m.name).key("functions").value(s->size());
    out.key("energy").value(far::text(found.energy)).key("iterations").value(found.iterations);
    out.key("converged").value(found.converged).key("seconds").value(all);
    if (asked.verify) out.key("serial").value(far::text(alone.energy));
    programs::write_json(out, figures);
    out.end_object();
    if (far::rank() == 0) std::printf("%s\n", out.text().c_str());
  } else {
    const std::string table = programs::table_of(figures);
    if (far::rank() == 0) {
      std::printf("%s, %s: %zu functions, %d electrons, %zu iterations, %.1f ms\n", m.name.c_str(),
                  asked.basis.c_str(), s->size(), m.electrons, found.iterations, 1e3 * all);
      std::printf("energy %.8f hartree\n%s", found.energy, table.c_str());
      if (m.known_energy) std::printf("literature: %.4f hartree\n", *m.known_energy);
      if (asked.verify) std::printf("verified: one rank alone finds %.8f\n", alone.energy);
    }
  }
  if (!found.converged)
    throw far::refusal(far::text("farside scf: after ", found.iterations,
                                 " iterations the density still changes; bring atoms closer, or "
                                 "raise --iterations"));
  if (m.known_energy && std::abs(found.energy - *m.known_energy) > 1e-4)
    throw far::refusal(far::text("farside scf: WRONG: the energy is ", found.energy,
                                 ", and the literature has ", *m.known_energy));
  if (asked.verify && std::abs(found.energy - alone.energy) > 1e-9 * std::abs(alone.energy))
    throw far::refusal(far::text("farside scf: WRONG: the energy is ", found.energy,
                                 ", and one rank alone finds ", alone.energy));
  return 0;
}

}  // namespace

}  // namespace scf_program

int main(int argc, char** argv) {
  return programs::run_program("scf", argc, argv, scf_program::run);
}
