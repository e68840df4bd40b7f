// Node loads this into the measured process: it writes the memory use to file descriptor 3, ten times a
// second.
import { writeSync } from 'node:fs';

setInterval(() => {
  const { heapUsed, external } = process.memoryUsage();
  try {
    writeSync(3, `${heapUsed} ${external}\n`);
  } catch {
    // The measuring process has gone.
  }
}, 100).unref();
