# Finds the schema compiler and the header-only runtime. Defines FLATC.
find_program(FLATC flatc)
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Flatbuffers DEFAULT_MSG FLATC FLATBUFFERS_INCLUDE_DIR)
