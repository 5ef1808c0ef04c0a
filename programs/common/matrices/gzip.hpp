// What the library does not do by itself: compression by gzip, for its files of matrices.
#pragma once

#include <farside/algorithms/matrix_files/format.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace matrices {

/// Inflates a file while it is read.
std::unique_ptr<far::byte_stream> open_gzip(const std::string& path);

/// A member of a gzip file that inflates to `text`.
std::string pack_gzip(std::string_view text);

}  // namespace matrices
