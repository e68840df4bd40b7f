import { bytes, channel, MiB, milliseconds, times } from './channel.ts';

/** What an Eval Service sends. */

export const serviceAnswers = channel({
  sender: 'the service',
  over: 'answers to the calls of its operations',
  // No documented answer comes near this; more is a mistake or an attack.
  bytes: { answer: bytes(64 * MiB, 'an answer') },
  time: {
    connect: milliseconds(10_000, 'until a connection stands'),
    attempt: milliseconds(60_000, 'one try of a call'),
    call: milliseconds(180_000, 'a call with all its tries'),
    health: milliseconds(15_000, 'the question of a daemon whether it is there'),
    retryWait: milliseconds(15_000, 'between two tries'),
    retryAfter: milliseconds(60_000, 'that a service may ask to wait before the next try'),
    // One that is due later than this was put off by a clock that has since been set back.
    deferral: milliseconds(15 * 60_000, 'that a report is put off'),
  },
  count: {
    tries: times(6, 'tries of a call'),
    retryBudget: times(30, 'further tries of all calls that are saved up'),
    // Ten thousand pages of the specification's size.
    runs: times(200_000, 'runs of a case in a list'),
    issues: times(20, 'issues of an answer in a message'),
  },
});

export const foundRuns = channel({
  sender: 'the service',
  over: 'runs that a daemon finds in its lists',
  bytes: 'each list is one answer',
  time: {
    // A call of the service is given up after three minutes.
    step: milliseconds(10 * 60_000, 'a step of a loop; then the watchdog ends the daemon'),
    nowhere: milliseconds(60_000, 'between two looks at settings that name no place'),
    clockDifference: milliseconds(10 * 60_000, "that the service's clock may differ from ours"),
  },
  count: 'the runs of a list are bounded; what is in memory is what runs and as much again',
});
