// Loaded by Node into the measured process: writes what it holds to file descriptor 3, ten times a second.
import { writeSync } from 'node:fs';

setInterval(() => {
  const { heapUsed, external } = process.memoryUsage();
  try {
    writeSync(3, `${heapUsed} ${external}\n`);
  } catch {
    // Whoever measured has gone.
  }
}, 100).unref();
