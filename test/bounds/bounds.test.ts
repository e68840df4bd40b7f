import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { channels } from '../../src/bounds/channels.ts';
import { withTable } from '../../src/bounds/table.ts';

const root = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');

/** Every bound by the words that read it: `relayTraffic.bytes.requestHead`. */
const bounds = Object.entries(channels).flatMap(([name, { bytes, time, count }]) =>
  Object.entries({ bytes, time, count }).flatMap(([dimension, numbers]) =>
    Object.entries(numbers).map(([bound, most]) => ({ bound: `${name}.${dimension}.${bound}`, most })),
  ),
);

test('docs/reference/bounds.md shows the bounds that the code reads (else: npm run generate)', () => {
  const page = read('docs/reference/bounds.md');
  expect(withTable(page, channels)).toBe(page);
});

test('a page without a place for the table is refused', () => {
  expect(() => withTable('# No such place\n', channels)).toThrow('no place');
});

test('every bound is above zero, and some code reads it', () => {
  const modules = globSync('{src,runners}/**/*.ts', { cwd: root, exclude: ['src/bounds/**'] });
  const code = modules.map(read).join('\n');
  expect(bounds.length).toBeGreaterThan(100);
  for (const { bound, most } of bounds) {
    expect(most, bound).toBeGreaterThan(0);
    expect(code.includes(bound), `${bound} is read`).toBe(true);
  }
});

test('every channel has a bound in each dimension, or says why it needs none', () => {
  for (const [name, { description }] of Object.entries(channels))
    for (const dimension of [description.bytes, description.time, description.count])
      expect(
        typeof dimension === 'string' ? dimension.trim().length : Object.keys(dimension).length,
        name,
      ).toBeGreaterThan(0);
});

/** Modules that say how much Offsite itself needs, does at a time or waits: nobody else's bytes. */
const own = [
  'src/agent/admission.ts',
  'src/agent/finish-trial.ts',
  // The lengths that the system allows.
  'src/agent/daemon/control-socket.ts',
  'src/suite/variables.ts',
  'src/base-image/',
  'src/api/data-folder.ts',
  'src/doctor/',
  'src/engine/container/remove.ts',
  // How many users are asked who owns what.
  'src/engine/podman/archives.ts',
  'src/engine/snapshot/',
  // How much memory a trial counts as at least, where a fleet places it.
  'src/fleet/placement.ts',
  'src/base/byte-store.ts',
  // How a limit of our own follows what a model takes.
  'src/gateway/limits/',
  // How pieces of a text that is bounded are kept in memory.
  'src/gateway/translation/neutral-answer.ts',
  // How much of a name or a line a message shows, and what engines refuse.
  'src/text/nearest.ts',
  'src/suite/quantities.ts',
  'src/suite/schema-problems.ts',
  'src/suite/yaml-file.ts',
  // How many refused files a message names.
  'src/agent/daemon/ticket.ts',
  // How much is read before others are served.
  'src/service/record/setup.ts',
  'src/ledger/reserve.ts',
  // How a key may be written to be found.
  'src/redaction/',
  'src/service/json-response.ts',
  // How much of a record a page shows at a time.
  'src/viewer/',
];

/** A number that a module names itself, of which its name or its size says that it limits something. */
const limiting =
  /^(?:export )?const (?:(?:largest|longest|most|deepest|max|parallel)\w*(?:: \w+)? = [\d(]|\w+(?:: \w+)? = [\d_]+ \* 1024)/im;

test('no module bounds what others send by a number of its own', () => {
  const modules = globSync('src/**/*.ts', { cwd: root, exclude: ['src/bounds/**'] });
  const bounding = modules.filter((path) => limiting.test(read(path)));
  expect(bounding.filter((path) => !own.some((start) => path.startsWith(start)))).toEqual([]);
});
