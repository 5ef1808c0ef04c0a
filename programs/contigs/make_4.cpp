#include "make.hpp"

template void make_contigs<4>(const contig_job&);
