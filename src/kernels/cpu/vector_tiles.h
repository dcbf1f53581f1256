// Tile functions on floats that are written with vectors; tiles.h says how they stand in for a formula's loop.
#pragma once
#include <cstdint>

#include "kernels/cpu/tiles.h"
#include "kernels/formulas.h"

namespace rush::cpu {

void exp_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void log1p_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void pow_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void rsqrt_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void sigmoid_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void logsigmoid_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void softplus_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void gelu_tile(const void* formula, void* const* out, const void* const* in, int64_t n);
void gelu_grad_tile(const void* formula, void* const* out, const void* const* in, int64_t n);

template <>
inline constexpr TileFunction kVectorTile<formula::Exp, float> = exp_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::Log1p, float> = log1p_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::Pow, float, float> = pow_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::Rsqrt, float> = rsqrt_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::Sigmoid, float> = sigmoid_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::LogSigmoid, float> = logsigmoid_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::Softplus<float>, float> = softplus_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::Gelu, float> = gelu_tile;
template <>
inline constexpr TileFunction kVectorTile<formula::GeluGrad, float, float> = gelu_grad_tile;

}  // namespace rush::cpu
