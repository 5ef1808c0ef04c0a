// Functions of fast paths become part of the loop that calls them. Where nothing is optimised that
// would only cost the compiler time.
#pragma once

#if defined(__OPTIMIZE__)
#define FARSIDE_HOT [[gnu::always_inline]]
#else
#define FARSIDE_HOT
#endif
