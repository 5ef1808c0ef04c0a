#include "count.hpp"

template void count_kmers<1, false>(const count_job&);
template void count_kmers<1, true>(const count_job&);
