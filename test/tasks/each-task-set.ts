import { afterEach, beforeEach } from 'vitest';
import { openTaskSet, type TaskSetFolder } from './task-set.ts';

/** The tasks of the test that runs, in files that call {@link eachTaskSet}. */
export let set: TaskSetFolder;

/** Gives each test of a file a folder of tasks of its own. Call it in the file. */
export function eachTaskSet(): void {
  beforeEach(() => {
    set = openTaskSet();
  });
  afterEach(() => set[Symbol.dispose]());
}
