// Where the entries of a matrix lie, as a picture: of characters, or as SVG.
#pragma once

#include "figures.hpp"

#include <string>

namespace matrix_program {

/// For terminals: the denser a cell, the more ink its character has.
std::string text_picture(const raster& cells);

/// An SVG of about 700 pixels a side. `grid`: how many entries the blocks of a grid of ranks have,
/// whose borders are drawn.
std::string svg_picture(const raster& cells, const raster& grid, const std::string& title,
                        std::uint64_t entries);

}  // namespace matrix_program
