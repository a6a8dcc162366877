// What the sources of libdovetail_arrow.so share.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include <arrow/api.h>

#include "worker/data/arrow/arrow_table.h"

namespace dt::worker {

// Keeps the text for the caller, as one line; see ArrowError.
ArrowError MakeArrowError(ArrowCode code, const std::string& text);
// `otherwise`: the code of what is neither missing memory nor a file that is not there.
ArrowError ToArrowError(const arrow::Status& status, ArrowCode otherwise);

// Runs a function that returns arrow::Status. Arrow itself may throw, for example if there is no
// memory.
template <class Body>
arrow::Status Caught(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return arrow::Status::OutOfMemory("there is no memory left");
  } catch (const std::exception& error) {
    return arrow::Status::Invalid(error.what());
  } catch (...) {
    return arrow::Status::UnknownError("unknown error");
  }
}

// The type that stores the values of an extension type, such as tensors of a fixed shape; other
// types are their own.
const arrow::DataType& StoredType(const arrow::DataType& type);
// The type of values, or of a column of lists or dictionaries.
ArrowType ArrowTypeOf(const arrow::DataType& type);
// Describes `array`, which must outlive `out`. `more` holds the columns that `out` points to.
void DescribeArray(const arrow::Array& array, ArrowColumn& out, std::deque<ArrowColumn>& more);

// Fill in the functions of the table that each source implements.
void FillParquet(ArrowTable& table);
void FillFiles(ArrowTable& table);

}  // namespace dt::worker
