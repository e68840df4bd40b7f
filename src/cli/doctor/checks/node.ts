import type { Check } from '../check.ts';

/** The first version that runs TypeScript directly and has the SQLite features that the ledger uses. */
const neededMajor = 24;

export const nodeVersion: Check = {
  name: 'Node.js',
  async run() {
    const found = `${process.version} (${process.execPath})`;
    if (Number.parseInt(process.versions.node, 10) >= neededMajor) return { state: 'ok', found };
    const fix = `Use Node.js ${neededMajor} or newer.`;
    return { state: 'fail', kind: 'infrastructure', found, fix };
  },
};
