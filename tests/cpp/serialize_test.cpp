// .pt files: zip archives, pickles and what hostile ones may do. Exchange with PyTorch itself is in
// tests/python/test_serialize.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "rushlight/ops.h"
#include "rushlight/serialize.h"
#include "serialize/checkpoint.h"

using namespace rush::serialize;
using namespace std::string_literals;

namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::string saved(const Value& value) {
  std::string out;
  save(value, [&](const void* data, size_t size) { out.append(static_cast<const char*>(data), size); });
  return out;
}

std::string archive(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string out;
  ZipWriter zip([&](const void* data, size_t size) { out.append(static_cast<const char*>(data), size); });
  for (const auto& [name, bytes] : records) zip.add(name, bytes);
  zip.finish();
  return out;
}

Value read_pickle(const std::string& stream, size_t storage_bytes = 16) {
  std::string_view bytes = stream;
  return unpickle(bytes, [&](const auto&, const std::string& dtype, const std::string& location, size_t size) {
    if (size > storage_bytes) throw PickleError("storage too short");
    return std::make_shared<StorageRecord>(StorageRecord{Blob::allocate(storage_bytes), dtype, location});
  });
}

std::string refusal(const std::string& stream) {
  try {
    read_pickle(stream);
  } catch (const rush::Error& error) {
    return error.what();
  }
  return "accepted";
}

// PyTorch's words for a float tensor over storage "0" of four elements.
std::string tensor_pickle(const std::string& offset, const std::string& sizes, const std::string& strides) {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n"
         "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
         "0X\x03\0\0\0cpuK\x04tQ"s +
         offset + sizes + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR."s;
}

std::shared_ptr<TensorRecord> make_tensor(const std::string& bytes, std::vector<int64_t> sizes) {
  auto tensor = std::make_shared<TensorRecord>();
  tensor->storage = std::make_shared<StorageRecord>(StorageRecord{Blob::copy_of(bytes), "float32", "cpu"});
  tensor->dtype = "float32";
  tensor->sizes = std::move(sizes);
  tensor->strides.assign(tensor->sizes.size(), 1);
  return tensor;
}

TEST(Zip, ChecksumsAndCompressionAreTheStandardOnes) {
  EXPECT_EQ(crc32("123456789", 9), 0xcbf43926u);
  std::string bytes;
  uint32_t expected = ~0u;  // bit by bit, for every length around the blocks that are taken at once
  for (size_t n = 0; n < 1000; ++n) {
    ASSERT_EQ(crc32(bytes.data(), n), ~expected) << n;
    bytes += static_cast<char>(n * n * 31 + 7);
    expected ^= static_cast<uint8_t>(bytes.back());
    for (int bit = 0; bit < 8; ++bit) expected = expected >> 1 ^ (expected & 1 ? 0xedb88320u : 0);
  }
  EXPECT_EQ(inflate(from_hex("2b2a2dce5028422100"), 19), "rush rush rush rush");
  EXPECT_EQ(inflate(from_hex("010600f9ff73746f726564"), 6), "stored");
  EXPECT_THROW(inflate(from_hex("2b2a2dce5028422100"), 18), FileError);
  EXPECT_THROW(inflate(from_hex("2b2a2dce50"), 19), FileError);
  EXPECT_THROW(inflate("", size_t{1} << 62), FileError);
}

TEST(Zip, ReadsDeflatedEntries) {
  // Made by Python's zipfile: 40 times "light ", then the bytes from 0 to 63.
  const ZipReader zip(Blob::copy_of(from_hex(
      "504b030414000000080000002100a4e26d9f4b0000003001000003000000612f74cbc94ccf2851c8193124032313330b2b1b3b07"
      "2717370f2f1fbf80a090b088a898b884a494b48cac9cbc82a292b28aaa9aba86a696b68eae9ebe81a191b189a999b985a595b58d"
      "ad9d3d00504b0102140314000000080000002100a4e26d9f4b000000300100000300000000000000000000008001000000006"
      "12f74504b05060000000001000100310000006c0000000000")));
  EXPECT_EQ(zip.read("a/t").size, 304u);
  EXPECT_EQ(zip.read("a/t").text().substr(0, 12), "light light ");
  EXPECT_EQ(zip.read("a/t").text().back(), 63);
}

TEST(Zip, WritesAlignedEntriesThatItReads) {
  const std::string bytes = archive({{"a/one", "first"}, {"a/two", std::string(1000, 'x')}, {"a/empty", ""}});
  const ZipReader zip(Blob::copy_of(bytes));
  EXPECT_EQ(zip.names(), (std::vector<std::string>{"a/one", "a/two", "a/empty"}));
  EXPECT_EQ(zip.read("a/one").text(), "first");
  EXPECT_EQ(zip.read("a/two").text(), std::string(1000, 'x'));
  EXPECT_EQ(zip.read("a/empty").size, 0u);
  for (const auto& name : zip.names()) EXPECT_EQ(reinterpret_cast<uintptr_t>(zip.read(name).data) % 64, 0u) << name;
  EXPECT_THROW(zip.read("a/three"), FileError);
}

TEST(Zip, ManyEntriesNeedZip64) {
  std::vector<std::pair<std::string, std::string>> records(70000);
  for (size_t i = 0; i < records.size(); ++i) records[i].first = std::to_string(i);
  records.back().second = "last";
  const ZipReader zip(Blob::copy_of(archive(records)));
  EXPECT_EQ(zip.names().size(), records.size());
  EXPECT_EQ(zip.read("69999").text(), "last");
}

TEST(Zip, RefusesWhatIsBroken) {
  EXPECT_THROW(ZipReader(Blob::copy_of("")), FileError);
  EXPECT_THROW(ZipReader(Blob::copy_of("PK\x03\x04 and no more")), FileError);
  const std::string good = archive({{"a/one", "first"}});
  for (size_t cut = 1; cut < good.size(); ++cut)
    EXPECT_THROW(ZipReader(Blob::copy_of(good.substr(0, cut))), FileError) << cut;
}

TEST(Zip, AFileIsWrittenWholeOrNotAtAll) {
  const auto folder = std::filesystem::temp_directory_path() / ("rushlight_serialize_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "x.pt";
  write_file(path, [](const Sink& sink) { sink("old", 3); });
  EXPECT_THROW(write_file(path,
                          [](const Sink& sink) {
                            sink("new", 3);
                            throw FileError("half way");
                          }),
               FileError);
  EXPECT_EQ(map_file(path).text(), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_THROW(write_file(folder / "none" / "x.pt", [](const Sink&) {}), FileError);
  EXPECT_THROW(map_file(folder), FileError);
  std::filesystem::remove_all(folder);
}

TEST(Pickle, ReadsEveryKindOfValue) {
  const Value value = read_pickle(
      "\x80\x04(K\x07M\x01\x02J\xff\xff\xff\xff\x8a\x01\x80G\x3f\xf8\0\0\0\0\0\0\x8c\x02hiC\x02\x00\xffN\x88]K\x01"
      "a}\x8c\x01kK\x02st."s);
  const auto& items = value.ref<Sequence>()->items;
  EXPECT_EQ(*items[0].as<int64_t>(), 7);
  EXPECT_EQ(*items[1].as<int64_t>(), 513);
  EXPECT_EQ(*items[2].as<int64_t>(), -1);
  EXPECT_EQ(*items[3].as<int64_t>(), -128);
  EXPECT_EQ(*items[4].as<double>(), 1.5);
  EXPECT_EQ(*items[5].as<std::string>(), "hi");
  EXPECT_EQ(items[6].as<Bytes>()->data, "\x00\xff"s);
  EXPECT_TRUE(items[7].as<None>());
  EXPECT_TRUE(*items[8].as<bool>());
  EXPECT_EQ(*items[9].ref<Sequence>()->items[0].as<int64_t>(), 1);
  EXPECT_EQ(*items[10].ref<Dict>()->find("k")->as<int64_t>(), 2);
}

TEST(Pickle, TensorsMustFitTheirStorage) {
  const auto good = read_pickle(tensor_pickle("K\x00"s, "K\x02K\x02\x86"s, "K\x02K\x01\x86"s));
  EXPECT_EQ(good.ref<TensorRecord>()->sizes, (std::vector<int64_t>{2, 2}));
  const std::string says = "do not fit into its storage";
  EXPECT_NE(refusal(tensor_pickle("K\x01"s, "K\x02K\x02\x86"s, "K\x02K\x01\x86"s)).find(says), std::string::npos);
  EXPECT_NE(refusal(tensor_pickle("K\x00"s, "K\x02K\x02\x86"s, "K\x03K\x01\x86"s)).find(says), std::string::npos);
  EXPECT_NE(refusal(tensor_pickle("K\x00"s, "J\xff\xff\xff\xff\x85"s, "K\x01\x85"s)).find(says), std::string::npos);
  const std::string huge = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s;  // 2 ** 63 - 1
  EXPECT_NE(refusal(tensor_pickle("K\x00"s, huge + huge + "\x86", huge + huge + "\x86")).find(says), std::string::npos);
  EXPECT_NE(refusal(tensor_pickle(huge, "K\x01\x85"s, "K\x01\x85"s)).find(says), std::string::npos);
}

TEST(Pickle, RunsNothingAndNamesWhatItRefuses) {
  EXPECT_NE(refusal("\x80\x02"
                    "cposix\nsystem\nX\x04\0\0\0true\x85R."s)
                .find("'posix.system' is not on the list"),
            std::string::npos);
  EXPECT_NE(refusal("\x80\x02"
                    "ctorch\nSize\n."s)
                .find("left in it as a value"),
            std::string::npos);
}

TEST(Pickle, BombsAreRefused) {
  std::string deep = "\x80\x02" + std::string(100000, ']') + std::string(99999, 'a') + ".";
  EXPECT_NE(refusal(deep).find("nested too deeply"), std::string::npos);
  std::string garbage = "\x80\x02]q\x00"s;  // built from the inside, then thrown away
  for (int i = 0; i < 100000; ++i) garbage += "]h\0aq\0"s;
  EXPECT_TRUE(read_pickle(garbage + "0N.").as<None>());
  std::string wide = "\x80\x02]q\x00"s;  // fifty lists, each holding the one before twice: 2 ** 50 leaves
  for (int i = 1; i < 50; ++i) wide += "](h"s + char(i - 1) + "h" + char(i - 1) + "eq" + char(i);
  EXPECT_TRUE(read_pickle(wide + ".").ref<Sequence>());
  EXPECT_NE(refusal("\x80\x02]q\0h\0a."s).find("contains itself"), std::string::npos);
  std::string copies = "\x80\x02(X\0\0\x10\0"s + std::string(1 << 20, 'x') + "q\0"s;
  for (int i = 0; i < 1 << 20; ++i) copies += "h\0"s;
  EXPECT_NE(refusal(copies + "t.").find("unfolds"), std::string::npos);
}

TEST(Checkpoint, ReturnsWhatWasSaved) {
  const auto weight = make_tensor(std::string(8, '\1'), {2});
  auto parameter = make_tensor(std::string(4, '\2'), {1});
  parameter->parameter = parameter->requires_grad = true;
  const Value list = make_list({1, 2.5, "three", None{}, true, BigInt{std::string(10, '\7')}});
  const Value state = make_dict({{"weight", weight}, {"again", weight}, {"bias", parameter}}, true);
  state.ref<Dict>()->attributes = make_dict({{"_metadata", make_dict({})}});
  const Value before = make_dict({{"state", state},
                                  {"list", list},
                                  {"same", list},
                                  {"bytes", Bytes{"\xff\0z"s}},
                                  {"dtype", DtypeName{"bfloat16"}},
                                  {"device", DeviceName{"cuda:1"}}});
  const Value after = load(Blob::copy_of(saved(before)));
  const auto* dict = after.ref<Dict>();
  EXPECT_EQ(dict->find("list")->ref<Sequence>(), dict->find("same")->ref<Sequence>());
  EXPECT_EQ(dict->find("bytes")->as<Bytes>()->data, "\xff\0z"s);
  EXPECT_EQ(dict->find("dtype")->as<DtypeName>()->name, "bfloat16");
  EXPECT_EQ(dict->find("device")->as<DeviceName>()->text, "cuda:1");
  const auto* read = dict->find("state")->ref<Dict>();
  EXPECT_TRUE(read->ordered && read->attributes.ref<Dict>()->find("_metadata"));
  EXPECT_EQ(read->find("weight")->ref<TensorRecord>(), read->find("again")->ref<TensorRecord>());
  EXPECT_EQ(read->find("weight")->ref<TensorRecord>()->storage->bytes.text(), std::string(8, '\1'));
  EXPECT_TRUE(read->find("bias")->ref<TensorRecord>()->parameter);
  EXPECT_TRUE(read->find("bias")->ref<TensorRecord>()->requires_grad);
}

TEST(Checkpoint, RefusesFilesThatLackSomething) {
  const std::string pickle = tensor_pickle("K\x00"s, "K\x04\x85"s, "K\x01\x85"s);
  const auto result = [](const std::string& file) {
    try {
      load(Blob::copy_of(file));
    } catch (const rush::Error& error) {
      return std::string(error.what());
    }
    return "accepted"s;
  };
  EXPECT_EQ(result(archive({{"a/data.pkl", pickle}, {"a/data/0", std::string(16, 0)}})), "accepted");
  EXPECT_NE(result(archive({{"a/data.pkl", pickle}, {"a/data/0", std::string(15, 0)}})).find("shorter"),
            std::string::npos);
  EXPECT_NE(result(archive({{"a/data.pkl", pickle}})).find("no record 'a/data/0'"), std::string::npos);
  EXPECT_NE(result(archive({{"a/other", ""}})).find("no data.pkl"), std::string::npos);
  EXPECT_NE(result("hello").find("not a .pt file"), std::string::npos);
  EXPECT_NE(result("").find("not a .pt file"), std::string::npos);
}

TEST(Checkpoint, ReadsTheOtherByteOrder) {
  const std::string file = archive({{"a/data.pkl", tensor_pickle("K\x00"s, "K\x01\x85"s, "K\x01\x85"s)},
                                    {"a/byteorder", "big"},
                                    {"a/data/0", "\x3f\x80\0\0"s + std::string(12, 0)}});
  EXPECT_EQ(load(Blob::copy_of(file)).ref<TensorRecord>()->storage->bytes.text().substr(0, 4), "\0\0\x80\x3f"s);
}

// Damaged files are refused or read, and nothing else; the sanitizer build sees what "else" would be.
TEST(Checkpoint, SurvivesDamage) {
  const auto weight = make_tensor(std::string(8, '\1'), {2});
  const std::string good = saved(make_dict({{"w", weight}, {"x", make_list({1, 2.5, "three", Bytes{"b"}})}}, true));
  std::mt19937 random(0);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % bad.size();
      switch (random() % 3) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad.erase(at, random() % 16), bad += 'x';
          break;
        default:
          bad.insert(at, 1 + random() % 8, static_cast<char>(random()));
      }
    }
    try {
      saved(load(Blob::copy_of(bad)));
    } catch (const rush::Error&) {
    }
  }
}

// rush::save and rush::load.
class TensorFile : public testing::Test {
 protected:
  TensorFile() : path_(std::filesystem::temp_directory_path() / ("rushlight_" + std::to_string(::getpid()) + ".pt")) {}
  ~TensorFile() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST_F(TensorFile, KeepsValuesLayoutAndSharing) {
  const rush::Tensor base = rush::view(rush::arange(24), {4, 6});
  const rush::Tensor turned = rush::transpose(base, 0, 1);
  rush::save({{"base", base}, {"turned", turned}, {"scalar", rush::full({}, 2.5)}, {"empty", rush::zeros({0, 3})}},
             path_);
  for (const bool mmap : {false, true}) {
    const auto read = rush::load(path_, mmap);
    ASSERT_EQ(read.size(), 4u);
    EXPECT_EQ(read[1].first, "turned");
    EXPECT_EQ(read[0].second.dtype(), rush::kInt64);
    EXPECT_EQ(rush::sum(read[0].second != base).item<int64_t>(), 0);
    EXPECT_EQ(rush::sum(read[1].second != turned).item<int64_t>(), 0);
    EXPECT_FALSE(read[1].second.is_contiguous());
    EXPECT_EQ(read[0].second.data_ptr(), read[1].second.data_ptr());
    EXPECT_EQ(read[2].second.item<double>(), 2.5);
    EXPECT_EQ(read[3].second.size(1), 3);
    read[0].second.data<int64_t>()[0] = 7;  // stays in this process, mapped or not
  }
}

TEST_F(TensorFile, NamesWhatLiesDeeper) {
  const auto weight = make_tensor(std::string(8, '\0'), {2});
  save(make_dict({{"model", make_dict({{"weight", weight}})}, {"list", make_list({1, weight})}}), path_.string());
  const auto read = rush::load(path_);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].first, "model.weight");
  EXPECT_EQ(read[1].first, "list.1");
}

TEST_F(TensorFile, OddBoolsBecomeTrue) {
  auto tensor = make_tensor("\0\1\2\xff"s, {4});
  tensor->dtype = tensor->storage->dtype = "bool";
  save(make_dict({{"b", tensor}}), path_.string());
  for (const bool mmap : {false, true}) EXPECT_EQ(rush::sum(rush::load(path_, mmap)[0].second).item<int64_t>(), 3);
}

}  // namespace
