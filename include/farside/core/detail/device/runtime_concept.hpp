// The contract between far::device and what runs kernels: stand_in_runtime on the CPU, cuda_runtime on a
// GPU. One segment of device memory a rank, all of the same size; an address is (rank, offset).
#pragma once

#include <farside/core/device/device_view.hpp>

#include <concepts>
#include <cstddef>
#include <exception>

namespace far::inline FARSIDE_BACKEND::detail {

template <class D>
concept device_runtime =
    requires(D d, const D& constant, rank_t rank, std::size_t offset, std::size_t bytes, void* to,
             const void* from, int value, typename D::stream& s, const typename D::event& e) {
      { D::name } -> std::convertible_to<const char*>;
      { constant.segment_size() } -> std::same_as<std::size_t>;
      { constant.first_offset() } -> std::same_as<std::size_t>;  ///< the heap begins there
      {
        constant.address(rank, offset)
      } -> std::same_as<void*>;  ///< for kernels and libraries; or null
      { constant.view() } -> std::same_as<device_view>;

      // Streams do what is issued to them in order. Nothing here waits, unless it says so.
      { d.make_stream() } -> std::same_as<typename D::stream>;
      d.copy_in(s, rank, offset, from, bytes);       ///< `from` stays as it is until it is done
      d.copy_out(s, to, rank, offset, bytes);        ///< `to` has it when it is done
      d.copy(s, rank, offset, rank, offset, bytes);  ///< to, from; at least one is this rank's
      d.fill(s, rank, offset, value, bytes);         ///< each byte becomes `value`
      d.write_now(offset, from, bytes);              ///< to this rank's memory, beside all streams
      { d.record(s) } -> std::same_as<typename D::event>;  ///< of all that was issued so far
      { d.is_done(e) } -> std::same_as<bool>;              ///< throws where the device itself fails
      {
        e.fault()
      } -> std::same_as<std::exception_ptr>;  ///< of a kernel before it that is done; or null
      e.told();                               ///< its fault was thrown: see faults.hpp
      d.wait(s, e);                           ///< what is issued to `s` from now on waits for `e`
    };

}  // namespace far::inline FARSIDE_BACKEND::detail
