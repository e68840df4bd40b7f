import { plural } from '../text/quantities.ts';
import { type Audited, auditLevels } from './audit.ts';

/** What a batch is, as far as it is not simply a whole run of its suite with live models. */
export interface BatchFacts {
  passed: number;
  failed: number;
  /** Trials without a result. */
  unfinished: number;
  /** Whether a process works on it now, if that was looked at. */
  isRunning?: boolean | undefined;
  /** Trials that were canceled, or abandoned, before they had a result. */
  canceled?: number | undefined;
  /** Whether it is one of the service, of which runs were found and run here. */
  isFound?: boolean | undefined;
  /** Trials of it that others ran. Others may have run more, of which nothing is known here. */
  elsewhere?: number | undefined;
  /** Trials that ran here, and of which the service has another result. They do not count. */
  superseded?: number | undefined;
  /** Results that the service does not show yet, and those that somebody gave up reporting. */
  unreported?: number | undefined;
  dropped?: number | undefined;
  /** Trials of whose results only the service had a record. */
  fromService?: number | undefined;
  /** How many cases it has. */
  cases: number;
  /** How many cases its suite has, if some were left out on purpose. */
  suiteCases?: number | undefined;
  /** Where the answers of its models came from. Undefined for a batch of an older Offsite. */
  answers?: 'live' | 'replayed' | 'forked' | undefined;
  /** Whether it came from evidence, or from the log of another program. */
  isForeign?: boolean | undefined;
  /** The trials that were graded again, by their last grading. */
  regraded?: Regraded | undefined;
  /** The trials that were audited. */
  audited?: Audited | undefined;
}

export interface Regraded {
  trials: number;
  /** Their verdicts in the trial itself, and now. */
  was: { passed: number; failed: number };
  now: { passed: number; failed: number };
}

/** What to know before the results of a batch are believed or compared, each in a few words. */
export function batchMarks(batch: BatchFacts): string[] {
  const { unfinished, canceled = 0, fromService = 0, cases, suiteCases, isFound, elsewhere = 0 } = batch;
  const { answers, isForeign, isRunning, regraded, audited } = batch;
  const { superseded = 0, unreported = 0, dropped = 0 } = batch;
  const notSeen = 'not seen at the service';
  const marks = [
    isForeign && 'foreign',
    (answers === 'replayed' || answers === 'forked') && answers,
    suiteCases !== undefined && suiteCases > cases && `${cases} of ${suiteCases} cases`,
    isRunning && 'running',
    unfinished > 0 && `${plural(unfinished, 'trial')} left`,
    canceled > 0 && `${plural(canceled, 'trial')} canceled`,
    elsewhere > 0 && `${isFound ? 'at least ' : ''}${plural(elsewhere, 'trial')} ran elsewhere`,
    superseded > 0 && supersededText(superseded),
    isFound && 'found at the service',
    fromService > 0 && `${fromService} from the service`,
    // What comes from elsewhere is reported there, and what runs is reported by its process.
    unreported > 0 && !isForeign && !isRunning && `${plural(unreported, 'result')} ${notSeen}`,
    dropped > 0 && !isForeign && `${plural(dropped, 'result')} never reported: removed from the outbox`,
    regraded && regradedText(batch, regraded),
    audited && auditedText(audited),
  ];
  return marks.filter((mark) => typeof mark === 'string');
}

function supersededText(superseded: number): string {
  return superseded === 1
    ? '1 trial does not count: the service has another result of it'
    : `${superseded} trials do not count: the service has other results of them`;
}

/** `audited: 14 regraded, 2 contradicted`. */
function auditedText(audited: Audited): string {
  const standings = [...auditLevels, 'none', 'contradicted'] as const;
  const counts = standings.flatMap((standing) =>
    audited[standing] === undefined ? [] : [`${audited[standing]} ${standing}`],
  );
  return `audited: ${counts.join(', ')}`;
}

/**
 * `3 graded again: 20 % → 30 % in the batch`: its pass rate before and after, whatever variant is looked at.
 */
function regradedText({ passed, failed }: BatchFacts, { trials, was, now }: Regraded): string {
  const after = { passed: passed - was.passed + now.passed, failed: failed - was.failed + now.failed };
  const [before, last] = [rate({ passed, failed }), rate(after)];
  return `${trials} graded again: ${before === last ? `still ${last}` : `${before} → ${last}`} in the batch`;
}

function rate({ passed, failed }: { passed: number; failed: number }): string {
  const scored = passed + failed;
  return scored === 0 ? '–' : `${Math.round((passed / scored) * 100)} %`;
}
