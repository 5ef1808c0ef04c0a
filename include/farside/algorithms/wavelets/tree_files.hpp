// Files of wavelet trees.
//
//   | header, 96 bytes | a record for each node, in the order of a walk, depth first | coefficients, in the same order |
//
// So the bytes are the same whichever rank has what. Header, records and the coefficients of each
// node have checksums. Numbers are as this machine has them; a file from a machine of the other
// byte order is refused.
#pragma once

#include <farside/algorithms/detail/wavelets/tree_state.hpp>
#include <farside/base/mixing.hpp>
#include <farside/core/detail/checked_file.hpp>

#include <cstring>

namespace far::inline FARSIDE_BACKEND::wavelets {

namespace detail {

struct tree_file_header {
  std::array<char, 8> magic{'F', 'A', 'R', 'W', 'A', 'V', 'E', '1'};
  std::uint32_t byte_order = 0x01020304, dimensions = 0, k = 0, mode = 0, initial_level = 0,
                max_level = 0, compressed = 0, reserved = 0;
  double threshold = 0;
  std::uint64_t nodes = 0, coefficients = 0, records_checksum = 0, checksum = 0;

  std::uint64_t sum() const {
    tree_file_header copy = *this;
    copy.checksum = 0;
    return far::detail::hash_bytes(&copy, sizeof copy);
  }
};

struct tree_file_record {
  std::uint32_t level = 0, leaf = 0, coefficients = 0, reserved = 0;
  std::array<std::uint32_t, 4> at{};
  std::uint64_t checksum = 0;
};

template <std::size_t D>
tree_box<D> box_of(const tree_file_record& r) {
  tree_box<D> result{r.level, {}};
  std::copy_n(r.at.begin(), D, result.at.begin());
  return result;
}

/// Collective: what `part()` of any rank has to say is thrown on all.
template <class Part>
void file_together(const char* what, const std::string& path, Part part, const char* state) {
  far::detail::agree(far::world(), what + path, far::detail::problem_of(part), state);
}

/// Collective.
template <std::size_t D>
void save_tree(tree_state<D>& tree, const std::string& path) {
  std::vector<std::pair<tree_box<D>, stored_node>> own;
  for (const auto& [box, node] : tree.nodes->local()) own.emplace_back(box, node);
  std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<tree_file_record> records;
  for (const auto& [box, node] : own) {
    tree_file_record r{.level = box.level, .leaf = node.leaf, .coefficients = node.count};
    std::copy(box.at.begin(), box.at.end(), r.at.begin());
    r.checksum = far::detail::hash_bytes(tree.values_of(node).data(), node.count * sizeof(double));
    records.push_back(r);
  }
  std::vector<tree_file_record> all;
  for (const auto& some : far::all_gather(records)) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return box_of<D>(a) < box_of<D>(b); });
  const tree_options<D>& with = tree.options;
  tree_file_header header{.dimensions = D,
                          .k = static_cast<std::uint32_t>(with.k),
                          .mode = static_cast<std::uint32_t>(with.mode),
                          .initial_level = with.initial_level,
                          .max_level = with.max_level,
                          .compressed = tree.compressed ? 1u : 0u,
                          .threshold = with.threshold,
                          .nodes = all.size()};
  header.records_checksum =
      far::detail::hash_bytes(all.data(), all.size() * sizeof(tree_file_record));
  std::vector<std::uint64_t> begins;
  for (const auto& r : all)
    begins.push_back(header.coefficients), header.coefficients += r.coefficients;
  header.checksum = header.sum();

  const char* state = "Nothing of that name was changed.";
  far::draft draft(far::world());
  std::string problem = draft.create(path);
  file_together("cannot save ", path, [&] { return problem; }, state);
  file_together(
      "cannot save ", path,
      [&] {
        far::detail::open_file out(path, draft.descriptor());
        const std::uint64_t body = sizeof header + all.size() * sizeof(tree_file_record);
        if (far::rank() == 0) {
          out.write_at(0, &header, sizeof header);
          out.write_at(sizeof header, all.data(), body - sizeof header);
        }
        std::size_t at = 0;
        for (const auto& [box, node] : own) {
          while (!(box_of<D>(all[at]) == box)) ++at;
          out.write_at(body + begins[at] * sizeof(double), tree.values_of(node).data(),
                       node.count * sizeof(double));
        }
        return out.problem;
      },
      state);
  problem = draft.publish();
  file_together("cannot save ", path, [&] { return problem; }, state);
}

/// What is wrong with the records of a file; empty if they are a tree.
template <std::size_t D>
std::string objection_to(const tree_file_header& header, const std::vector<tree_file_record>& all) {
  const char* damaged = "the file is damaged: its records are no tree";
  std::vector<tree_box<D>> expected{tree_box<D>{}};
  const std::size_t small = tensor_size<D>(header.k), large = tensor_size<D>(2 * header.k);
  std::uint64_t coefficients = 0;
  for (const auto& r : all) {
    if (expected.empty() || !(box_of<D>(r) == expected.back())) return damaged;
    const tree_box<D> box = expected.back();
    expected.pop_back();
    const bool has_s = r.leaf != 0 && (header.compressed == 0 || box.level == 0);
    const bool has_d = r.leaf == 0 && header.compressed != 0;
    if (r.coefficients != (has_s ? small : has_d ? large : 0)) return damaged;
    coefficients += r.coefficients;
    if (r.leaf != 0) continue;
    if (box.level == deepest_level) return damaged;
    for (std::uint32_t c = box.children; c-- > 0;) expected.push_back(box.child(c));
  }
  return expected.empty() && coefficients == header.coefficients ? "" : damaged;
}

}  // namespace detail

/// What a file of a tree says of it.
using tree_file_header = detail::tree_file_header;

/// Collective: the header of a file, on all ranks. Throws far::error on all if it is no such file.
/// `dimensions` 0: any. Rank 0 reads, and 1 broadcast.
inline tree_file_header read_tree_header(const std::string& path, std::size_t dimensions = 0) {
  tree_file_header header;
  detail::file_together(
      "cannot load ", path,
      [&]() -> std::string {
        if (far::rank() != 0) return "";
        far::detail::open_file in(path);
        if (!in.problem.empty()) return in.problem;
        if (in.size() < sizeof header) return "it is no file of a wavelet tree";
        in.read_at(0, &header, sizeof header);
        if (!in.problem.empty()) return in.problem;
        if (header.magic != tree_file_header{}.magic) return "it is no file of a wavelet tree";
        if (header.byte_order != tree_file_header{}.byte_order)
          return "it is from a machine with another byte order";
        if (header.checksum != header.sum()) return "the file is damaged: its header has changed";
        const std::uint64_t bytes = sizeof header +
                                    header.nodes * sizeof(detail::tree_file_record) +
                                    header.coefficients * sizeof(double);
        if (in.size() != bytes)
          return far::text("the file has ", in.size(), " bytes, and needs ", bytes,
                           in.size() < bytes ? ": it has been cut off" : "");
        if (header.dimensions < 1 || header.dimensions > 3 || header.k < 1 ||
            header.k > largest_order)
          return "the file is damaged: there is no such tree";
        if (dimensions != 0 && header.dimensions != dimensions)
          return far::text("it is of ", header.dimensions, " dimensions, and not of ", dimensions);
        return "";
      },
      "Nothing was loaded.");
  return far::broadcast(header, 0);
}

namespace detail {

template <std::size_t D>
tree_file_header read_tree_header(const std::string& path) {
  return wavelets::read_tree_header(path, D);
}

template <std::size_t D>
tree_options<D> options_of(const tree_file_header& header, tree_options<D> with) {
  with.k = header.k;
  with.threshold = header.threshold;
  with.mode = static_cast<refinement>(header.mode);
  with.initial_level = header.initial_level;
  with.max_level = header.max_level;
  return with;
}

/// Collective.
template <std::size_t D>
void load_tree(tree_state<D>& tree, const tree_file_header& header, const std::string& path) {
  std::vector<tree_file_record> all;
  const char* state = "Nothing was loaded.";
  file_together(
      "cannot load ", path,
      [&]() -> std::string {
        far::detail::open_file in(path);
        if (!in.problem.empty()) return in.problem;
        all.resize(header.nodes);
        const std::size_t bytes = all.size() * sizeof(tree_file_record);
        in.read_at(sizeof header, all.data(), bytes);
        if (!in.problem.empty()) return in.problem;
        if (far::detail::hash_bytes(all.data(), bytes) != header.records_checksum)
          return "the file is damaged: the records of its nodes have changed";
        std::string wrong = objection_to<D>(header, all);
        if (!wrong.empty()) return wrong;
        std::uint64_t at = sizeof header + bytes;
        for (const auto& r : all) {
          const tree_box<D> box = box_of<D>(r);
          if (tree.is_mine(box)) {
            std::vector<double> values(r.coefficients);
            in.read_at(at, values.data(), r.coefficients * sizeof(double));
            if (!in.problem.empty()) return in.problem;
            if (far::detail::hash_bytes(values.data(), r.coefficients * sizeof(double)) !=
                r.checksum)
              return far::text("the file is damaged: the coefficients of ", box, " have changed");
            tree.put(box, values, r.leaf != 0);
          }
          at += r.coefficients * sizeof(double);
        }
        return "";
      },
      state);
  tree.compressed = header.compressed != 0;
  tree.nodes->fence();
}

}  // namespace detail

}  // namespace far::inline FARSIDE_BACKEND::wavelets
