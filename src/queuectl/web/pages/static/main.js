// Progressive enhancement: every page works without these scripts.
import { start as startGraph } from "./graph.js";
import { start as startForms } from "./forms.js";
import { start as startKeys } from "./keys.js";
import { start as startLive } from "./live.js";
import { start as startLog } from "./log.js";
import { start as startSelect } from "./select.js";
import { start as startTimes } from "./times.js";

for (const start of [startTimes, startForms, startSelect, startKeys, startGraph, startLog, startLive]) start();
