// Loaded at run time; knows nothing of messages.
extern "C" int sample_plugin(int x) { return 1000 + x; }
