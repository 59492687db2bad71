from tests.e2e.hosts import fragile as fragile
from tests.e2e.hosts import hosts as hosts
from tests.e2e.hosts import no_server_is_left as no_server_is_left
from tests.e2e.scene import chance as chance
from tests.e2e.scene import scene as scene
