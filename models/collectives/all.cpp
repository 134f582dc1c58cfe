// The table of collective algorithms: an algorithm is its file and its lines here.
#include "models/collectives/collective.hpp"

namespace clustersim {

extern const CollectiveAlgorithm kRing;
extern const CollectiveAlgorithm kTree;
extern const CollectiveAlgorithm kNvls;
extern const CollectiveAlgorithm kNvlsTree;
extern const CollectiveAlgorithm kSharp;
extern const CollectiveAlgorithm kTorusRing;
extern const CollectiveAlgorithm kHierarchical;
extern const CollectiveAlgorithm kRecursiveDoubling;
extern const CollectiveAlgorithm kRabenseifner;
extern const CollectiveAlgorithm kBinomial;
extern const CollectiveAlgorithm kScatterAllGather;
extern const CollectiveAlgorithm kDirect;
extern const CollectiveAlgorithm kPairwise;
extern const CollectiveAlgorithm kBruck;
extern const CollectiveAlgorithm kPointToPoint;

std::span<const CollectiveAlgorithm> collective_algorithms() {
  static const CollectiveAlgorithm algorithms[] = {
      kRing,
      kTree,
      kNvls,
      kNvlsTree,
      kSharp,
      kTorusRing,
      kHierarchical,
      kRecursiveDoubling,
      kRabenseifner,
      kBinomial,
      kScatterAllGather,
      kDirect,
      kPairwise,
      kBruck,
      kPointToPoint,
  };
  return algorithms;
}

}  // namespace clustersim
