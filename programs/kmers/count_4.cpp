#include "count.hpp"

template void count_kmers<4, false>(const count_job&);
template void count_kmers<4, true>(const count_job&);
