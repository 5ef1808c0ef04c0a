#include "make.hpp"

template void make_contigs<1>(const contig_job&);
