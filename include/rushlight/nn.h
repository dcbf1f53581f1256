// Neural networks in C++: modules, layers, criteria and initialization, with Python's names, options and state dicts.
// Functions are the operators themselves, rush::conv2d, rush::cross_entropy ... Read nn/module.h first.
#pragma once
#include "rushlight/nn/activations.h"
#include "rushlight/nn/containers.h"
#include "rushlight/nn/convolutions.h"
#include "rushlight/nn/dropout.h"
#include "rushlight/nn/embedding.h"
#include "rushlight/nn/flatten.h"
#include "rushlight/nn/init.h"
#include "rushlight/nn/linear.h"
#include "rushlight/nn/losses.h"
#include "rushlight/nn/module.h"
#include "rushlight/nn/normalizations.h"
#include "rushlight/nn/pooling.h"
