// All of rushlight. A file that needs little compiles faster with the one header it needs.
#pragma once
#include "rushlight/autograd.h"
#include "rushlight/data.h"
#include "rushlight/generator.h"
#include "rushlight/indexing.h"
#include "rushlight/nn.h"
#include "rushlight/ops.h"
#include "rushlight/optim.h"
#include "rushlight/parallel.h"
#include "rushlight/profiler.h"
#include "rushlight/serialize.h"
#include "rushlight/tensor.h"
