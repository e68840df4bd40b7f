import * as anyone from './anyone.ts';
import * as callers from './callers.ts';
import type { Channel } from './channel.ts';
import * as fleet from './fleet.ts';
import * as grading from './grading.ts';
import * as model from './model.ts';
import * as sandbox from './sandbox.ts';
import * as service from './service.ts';
import * as suite from './suite.ts';
import * as tasks from './tasks.ts';

/** Every channel by its name in the code, grouped by sender and sorted. */
export const channels: Readonly<Record<string, Channel>> = Object.fromEntries(
  [sandbox, model, service, suite, tasks, grading, fleet, callers, anyone].flatMap((sender) =>
    // Module loaders differ in the order of the names.
    Object.entries<Channel>(sender).toSorted(([one], [other]) => (one < other ? -1 : 1)),
  ),
);
