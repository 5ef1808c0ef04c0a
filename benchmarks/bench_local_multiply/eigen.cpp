#include <Eigen/Dense>
#include <Eigen/SparseCore>
#include <vector>

#include "peers.hpp"

namespace {

using sparse = Eigen::SparseMatrix<double, Eigen::RowMajor>;
using dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

class eigen : public sparse_peer {
 public:
  eigen(far::csr_view<double> a, const double* b, std::size_t columns)
      : a_(static_cast<int>(a.rows()), static_cast<int>(a.shape().columns)) {
    std::vector<Eigen::Triplet<double>> entries;
    entries.reserve(a.nnz());
    for (auto [at, value] : a)
      entries.emplace_back(static_cast<int>(at.row), static_cast<int>(at.column), value);
    a_.setFromTriplets(entries.begin(), entries.end());
    auto width = static_cast<Eigen::Index>(columns);
    if (width != 0) b_ = Eigen::Map<const dense>(b, a_.cols(), width);
    c_ = dense::Zero(a_.rows(), width);
  }
  std::size_t multiply() override {
    sparse c = a_ * a_;
    return static_cast<std::size_t>(c.nonZeros());
  }
  void multiply_dense() override { c_.noalias() += a_ * b_; }

 private:
  sparse a_;
  dense b_, c_;
};

}  // namespace

std::unique_ptr<sparse_peer> make_eigen(far::csr_view<double> a, const double* b,
                                        std::size_t columns) {
  return std::make_unique<eigen>(a, b, columns);
}
