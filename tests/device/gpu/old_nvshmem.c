/* A library that says that it is NVSHMEM 2.11. */
void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = 2;
  *minor = 11;
  *patch = 0;
}
