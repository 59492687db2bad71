from tests.e2e.scene import scene as scene
