"""The layers, one file a family; ``rushlight.nn`` has all of them."""

from .activation import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .linear import *
from .loss import *
from .module import Module
