"""save and load: round trips, files that PyTorch wrote, and exchange with the PyTorch that RUSHLIGHT_PEER_PYTHON has."""

import base64
import io
import os
import pickle
import subprocess
import textwrap
import zipfile
import zlib
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn

# Written by torch 2.15 (compressed, base 85), in its format of today, the one from before 1.6, and with pickle's protocol 4:
# w = torch.arange(6.).reshape(2, 3).t(); {"w": w, "p": Parameter(ones(2)), "b": tensor([1.5]).bfloat16(), "x": [1, 2.5, "a",
# b"b", 1j, {3}, Size([1]), float32, device("cpu"), None, 2 ** 70], "v": w[1]}
SAMPLES = {
    "zip": """
c-o~^-
EY%Y6u+@kH#MvujL}k98L*Fxl{8M=d_YS|1nGk%XpJ^Sm5}8+m&U@4bDZ12kS0}vbOY@H{sFYN{Rw*=`wxcT0cmeM08jA9Blp^gv5nHOa+RB#T%X
_h{mwn-T(2m69HB%4eK5w+0i-)d-
E8Bznojgo^SV_jkD|5E*yer#l&r=m;0DADVpBv)+ajjb5;X^}Z<$t2Be>DB9j%=aflDT<!_>G%E%glyyay30maUU3-
lhm~*I^olsytnd<`xKwKwx-PK?<*MJCIOf3cmv*cMZd~ENl?dZnVV9P7OP_cEL1=2;%oD>?5#Wh0k1XO&IMXuc<rwCMMVsVXRIC*7>?8K!WkQpl}
2x7%|s@14^s|pWm%B-
v<eNp~9ix+&`1Q!juY!UDP^EdtSPsmEG8+oFCm0*DM1^sq+|tFPU@dcZPi(^PGQ0;J6AWT*I4i@+y3tRAS3ZaW6IQwhrGInqk+l(Gqck{Se{Xu7K
~V0$nYgm<<V%J3u|2GBk~aOSd#lH0;f$g>Q=R!*Va*%cVEoj~$p*;dIEnh3SE&uELzc>m5j|Aa!HAV&0;(8Kykj0a=Cl?t^PA<}6KkuDemgZPTE(
c|WCv4ir^5bLrklPr?#*^|#?{FAepfx|{ihRhn>`fJKGxz&Y=XN(7cvIKP!zQHB$L?tAvn9S$KjSNhiUB+C0Wow{Z_n>x|j*lE$~sg$#k(*CF+G4
j7&|96`SXR|-~bdbDT|C(-
@8;woeAbaG`$xJ}$2E3wyBW_m#6R6}1SpS(|o3%@&e0DFqy<wSzSeR+(EIvQXs!rHd!zelzx>e@VmGYTS5a4;;F0tyNA3C?`{9}nJn!Nww!4!QkH
9*m9SdmmIC(+0AGw$sY<Ga5qJY@ul0elN#zD%WD*z*be?K1!V^5Vka{EwmYKC@r-i=UGHwY99s`2T&l@#A3r8I*b70B-
0l?3lCzZt3j)*34R^ocf<~(gnFF7YYSAU(C&?<w8C?pO!L3DU(g-
q^z9F$;EuWAZMA%<4@v`l2k|1RT*PqeVxJkWBdc<(f42!9lQW0L&zr_>UZNrodlbBI^<-PN4wk{Q9r>(oCx`O9Pr~`08x0bYeqxxpW-
OeyHRYg1H#ysQLGfj25UHstqw)7nJ6|`e`Dd01K2+29xRKQ5Lgw^fP!671Yx#U-u!7FITBfyId6R{cq_#XyE*R~cyEp&!NZKW_MYuK;fgU4
""",
    "old": """
c-nPRNpI6Y6!wy)bfBf|lzk^`AzRaiEuli~!J<(2;!9<@&QKe<c0PL&3R0z9659R-
4jlOz{2gvwkvQ<iNlSq;@{DG__x!%^EnRJg1wTK{|G4t@%j>CpS9|$Qr*jiZ&YDydr4>gaa-
+cR@Hp|K5GpxX<75eZAp&mmu<1J?v@MGfDBicYo%kPk0(}#ioHasV;zhB*h@n|Jz5GxhYh<j9j1h%v7&S8O_AaMN=sT#ch+@~v+il?o3A1Cq+V+E
{EqItjvE3;#Xt|s<Dua`!v&Nwheqr-L<cQ?~$dIun$fs5*)@qefwNjX_l?oV1b-1lI>Bue$j4m09p&MEshYZ!w`xx7HDdm8>f-+9ntGLNy-hAP^f
`Q#JaaiDpiSbly3lskl+j3%OoeLf_9Q8=9r+fS4l#7Kzxinj?VA9JP8p${&WoSJdH`E?ZY<rUFq`)Z?r?=9_nU6SYVk)Iw#koPuVcK(P-
o@%(=I8&)e5O#U-~v&pM0HV85z8fcTpmze5x8pNS{i)=*H>^OXQ&Ge*(O>k?BJ$ryHS(73FD!>Fx(o-xou@-
LmlCVMdbRRh<9DvmZc!bwwW8Pw*tPwaBo2wu7&#d!KIJ;CLa9Zo^UF5egzK=-
RYrVqBzWSnWl@OB$bzYsF;`@8s5kXlxZ}oL!ik!zDvF{d;Om6p=RRI;?CHvga%LbckuY%7X6->C*ELEo-
WaVP>Y@!dJpwM-5LVVP0Yy&UXc@gK!??XVrmC9NauNNSDMnT%bivBFNrA)`e=7)e{QHl%h&oZQttgV
""",
    "protocol 4": """
c-o~^$!^m?7#_!oleDPYrKLhWaWGN|&hA1>f&u4X3DQ<vDxt_trj1o+!Ew?>LXCt{D6-UTK%5Y7!If9wzzJ>$0Vnzh%-
Bh4JG3e7DAq*De9Qdv{o|}edjSXpK+hNfV?fsOMWq366=YowRo7He7y?U<(e%FgL0N$3h&8BnWL(iJ7#7Oabw#ZqV=Sk^<+`F4ayl&6Dq5})K}U#
X4Sx+Ulvg1#d?o@TMYSU9i|wC}kU??Cp!3x_k{BJ$OF*I}&km9(iQYlG#$djpsxYrBl`_^De5@6q1`7|AypFLq7Lbk>Fhvy=JvI|nS(8gphZ<f}^
s;QxR}2_b7!?O3kEP*hVTBgjEsnG~UYXxsnrzD*5MvArrrmJDZa6}SD2s@46B*P7dWu+y%A~zk%?wIL_c5svAntU9Y{Z|hl&UJ+z<im`VPsOr)|V
Yjvxh0@eeA%ysB95gqS7M#okIFoh_fguG+xFOU_;59{>);MrH@_*JKSk#P>pUaib1>qv)Ytd3EIAadMGRT1BYL?uN~t<Cr|d&{EUOaZhk^56|E%e
xdzl~__Rd9--%I}5Ptmg?F9)Dc}^#s1j!S^c6M^Is;rhvu&j$h)D_KhjYNzXNUcBn?ZFbBGYyP_RM)`rrVcA4aH4SMBD$TSD!Q&h;-
NM7{VIc1m@_>LfxC{byv2#a?MoQ2Seq%51N^~H6F(o)#L@Wv&w~m4$3!1T(@sZWQDDLO^@(;fMfCRPnJ+{j&_{39sTUCi{=yabWGWlK9?teZ|6y>
itK3cU++|LGX(>8D^gq8}ebQfl3PesCz}$KbY6|XvEt%YbIi(;9q5rhQ@v)g0&-
1b5Od`(3_+&KBap8D4!Ev!<l;;vNaXuD{Mu^Mnn`?V4_Q9GiDPp$k(|#w6^f-6FN8D)p1u*VFraj=aTf|LbZ{kS@$$_1u=jL$p*c)-w!81mK-
V4ADw|C8u1OAo<uHJQH?H%C6vR)T9?8e$N?8LrvV<T>?J%7W_E&G5w^KP&`7E=!Jp$+`+z-
A?eneN1!zS%_vU311`%{*hx80RPRcH4vX=I}8VCTOm=*8T<V=oX^
""",
}


def sample(name):
    return zlib.decompress(base64.b85decode(SAMPLES[name].replace("\n", "")))


def round_trip(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **options)


def storage_of(tensor):
    return torch._C._storage_of(tensor)[0]


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape, a.stride(), a.storage_offset()) == (b.dtype, b.shape, b.stride(), b.storage_offset())
        assert a.requires_grad == b.requires_grad
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
        assert getattr(a, "_metadata", None) == getattr(b, "_metadata", None)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    else:
        assert a == b


def everything():
    base = torch.arange(24.0).reshape(2, 3, 4)
    dtypes = [
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float64,
    ]
    return {
        "views": [base, base[1], base.transpose(0, 2), base[:, ::2], base[0, 0, 0]],
        "dtypes": [torch.arange(3).to(dtype) for dtype in dtypes],
        "bool": torch.tensor([True, False]),
        "complex": torch.tensor([1 + 2j, 3j]),
        "empty": torch.zeros(0, 3),
        "leaf": torch.ones(2, requires_grad=True),
        "parameters": [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)],
        "state": nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).state_dict(),
        "numbers": [0, -1, 255, 256, 2**31, -(2**63), 2**63 - 1, 2**70, -0.5, float("inf"), 1 - 2j, True, None],
        "text": ["", "plain", "äöü 漢字 😀"],
        "bytes": [bytes(range(256)), bytearray(b"\xff\x00")],
        "containers": [(), ((1,), [2]), {1, "a", (2, 3)}, OrderedDict(a=1), {1: 2, (1, "x"): 3, None: 4}],
        "names": [torch.float32, torch.bool, torch.device("cpu"), torch.device("cuda", 1), torch.Size([2, 3])],
    }


def test_everything_comes_back():
    before = everything()
    after = round_trip(before)
    same(before, after)
    assert len({storage_of(view) for view in after["views"]}) == 1


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_written_by_pytorch(name, weights_only):
    read = torch.load(io.BytesIO(sample(name)), weights_only=weights_only)
    w = torch.arange(6.0).reshape(2, 3).t()
    same(read["w"], w)
    same(read["v"], w[1])
    assert storage_of(read["v"]) == storage_of(read["w"])
    same(read["p"], nn.Parameter(torch.ones(2)))
    same(read["b"], torch.tensor([1.5]).bfloat16())
    same(read["x"], [1, 2.5, "a", b"b", 1j, {3}, torch.Size([1]), torch.float32, torch.device("cpu"), None, 2**70])


def test_shared_objects_stay_one(tmp_path):
    tensor, items = torch.ones(2), [1, 2]
    a, b, c, d = round_trip([tensor, tensor, items, items])
    assert a is b and c is d


def test_files_by_path(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(1000)}, path)
    for mmap in (False, True):
        read = torch.load(path, mmap=mmap)["a"]
        read[0] = 7  # stays in this process
        assert torch.equal(read[1:], torch.arange(1, 1000))
    with open(path, "rb") as file:
        assert torch.load(file)["a"][0] == 0
    assert os.listdir(tmp_path) == ["x.pt"]
    assert zipfile.ZipFile(path).testzip() is None


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(1, path)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        torch.save(lambda: 1, path)
    assert torch.load(path) == 1
    with pytest.raises(RuntimeError, match="Parent directory"):
        torch.save(1, tmp_path / "none" / "x.pt")
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")


def test_map_location():
    where = []

    def locate(storage, location):
        where.append(location)
        return None

    for target in (None, "cpu", torch.device("cpu"), {"cpu": "cpu"}, locate):
        same(round_trip([torch.ones(2)], map_location=target), [torch.ones(2)])
    assert where == ["cpu"]
    meta = round_trip([torch.ones(2)], map_location="meta")[0]
    assert meta.device.type == "meta" and meta.shape == (2,)
    with pytest.raises(TypeError, match="map_location must return"):
        round_trip([torch.ones(2)], map_location=lambda storage, location: 1)


class Opaque:
    def __init__(self, tensor):
        self.tensor = tensor

    def __eq__(self, other):
        return torch.equal(self.tensor, other.tensor)


def test_other_objects_need_weights_only_false():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.container.Sequential' is not on the list"):
        round_trip(model)
    read = round_trip(model, weights_only=False)
    assert repr(read) == repr(model)
    same(read.state_dict(), model.state_dict())
    assert round_trip(Opaque(torch.ones(2)), weights_only=False) == Opaque(torch.ones(2))


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_files_run_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="posix.mkdir' is not on the list of what a file may contain"):
        round_trip(Evil())
    assert not os.path.exists("evil")


def test_broken_files_are_errors():
    good = sample("zip")
    for cut in range(0, len(good), 97):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(good[:cut]))
    with pytest.raises(RuntimeError, match="not a .pt file"):
        torch.load(io.BytesIO(b"hello"))


def test_one_memory_with_two_dtypes_is_refused():
    a = torch.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([a, a.view(torch.int32)], io.BytesIO())


peer = os.environ.get("RUSHLIGHT_PEER_PYTHON")


def in_peer(source, *arguments):
    subprocess.run([peer, "-W", "ignore", "-c", textwrap.dedent(source), *map(str, arguments)], check=True)


@pytest.mark.skipif(not peer, reason="RUSHLIGHT_PEER_PYTHON names no Python that has PyTorch")
def test_exchange_with_pytorch(tmp_path):
    """Everything goes to PyTorch, which checks the layout, saves it again in three ways, and comes back unchanged."""
    before = everything()
    torch.save(before, tmp_path / "ours.pt")
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    torch.save(model, tmp_path / "model.pt")
    in_peer(
        """
        import sys, torch
        folder = sys.argv[1]
        for mmap in (False, True):
            read = torch.load(folder + "/ours.pt", weights_only=True, mmap=mmap)
        assert len({view.untyped_storage().data_ptr() for view in read["views"]}) == 1
        assert read["views"][2].stride() == (1, 4, 12) and type(read["parameters"][0]) is torch.nn.Parameter
        assert read["leaf"].requires_grad and not read["parameters"][1].requires_grad
        torch.save(read, folder + "/zip.pt")
        torch.save(read, folder + "/old.pt", _use_new_zipfile_serialization=False)
        torch.save(read, folder + "/protocol.pt", pickle_protocol=5)
        model = torch.load(folder + "/model.pt", weights_only=False)
        assert type(model[0]) is torch.nn.Linear and model(torch.ones(1, 2)).shape == (1, 2)
        torch.save(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh()), folder + "/model.pt")
        """,
        tmp_path,
    )
    for name in ("zip.pt", "old.pt", "protocol.pt"):
        same(before, torch.load(tmp_path / name))
        same(before, torch.load(tmp_path / name, weights_only=False))
    model = torch.load(tmp_path / "model.pt", weights_only=False)
    assert type(model[0]) is nn.Linear and model(torch.ones(1, 3)).shape == (1, 4)
