// Half of two hundred tests; the files run at the same time, each with a server of its own, on a table of the same name.

import { hundredTests } from "./hundred.js";

hundredTests(0);
