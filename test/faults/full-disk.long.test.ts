import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { runsOf } from '../cli/ask.ts';
import { offsite, start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { byRoot } from '../needs.ts';
import { letGo, untilBegun, untilLetGo } from './let-go.ts';

const asRoot = (program: string, ...args: string[]) => void execFileSync(program, args);

byRoot.test(
  'a disk that fills up on the way loses no result: what runs is kept and reported, nothing more is begun, and resuming does the rest',
  async () => {
    using place = openPlace();
    mkdirSync(place.dataFolder);
    asRoot('mount', '-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', place.dataFolder);
    try {
      const waiting = (id: string) => ({ id, verify: 'true', variables: { act: untilLetGo } });
      const cases = [{ id: 'one', verify: 'true' }, waiting('two'), waiting('three')];
      const running = start(place, ['run', place.suite({ cases }), '-c', '1']);
      const [, batch = ''] = await running.printed(/batch (\S+): 3 trials/);
      await running.printed(/✓ one/);
      await untilBegun(batch);
      const filler = join(place.dataFolder, 'filler');
      fill(filler);
      await letGo(batch, running.ended);
      const { exitCode, stdout, stderr } = await running.ended;
      expect(exitCode, stderr).toBe(3);
      expect(stdout).toMatch(/^stopped: 2 trials finished, 1 left$/m);
      expect(stderr).toMatch(/the disk of \S+ is full: .* no more trials start/);
      expect(stderr).toContain('offsite resume');
      expect(stderr).not.toContain('    at ');
      rmSync(filler);
      const statuses = async () =>
        (await runsOf(place, 'one', 'two', 'three')).map(({ trials }) => trials?.map(({ status }) => status));
      await offsite(place, ['data', 'outbox', 'send']);
      expect(await statuses()).toEqual([['reported'], ['reported'], ['queued']]);

      const resuming = start(place, ['resume', batch]);
      await letGo(batch, resuming.ended);
      expect((await resuming.ended).exitCode).toBe(0);
      expect(await statuses()).toEqual([['reported'], ['reported'], ['reported']]);
    } finally {
      asRoot('umount', '--lazy', place.dataFolder);
    }
  },
  180_000,
);

/** Writes until there is no room left. */
function fill(file: string): void {
  for (const size of [2 ** 20, 4096]) {
    try {
      for (;;) appendFileSync(file, Buffer.alloc(size));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}
