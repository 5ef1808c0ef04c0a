#include "count.hpp"

template void count_kmers<2, false>(const count_job&);
template void count_kmers<2, true>(const count_job&);
