# To be sourced at the root of the tree: the builds that follow use ccache, if it is there.
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros  # Without it, what uses precompiled headers is not cached.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1     # Clones in other folders share what is cached.
fi
