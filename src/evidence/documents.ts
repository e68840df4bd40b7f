import { readPlan } from '../agent/batch-run.ts';
import { messageOf } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { evidenceBundles } from '../bounds/anyone.ts';
import { namedBlobs } from '../record/named-blobs.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { recordPath } from '../trial/collect/artifacts.ts';
import { type Content, entryOf, type NamedTrial, namedTrials, type Statement } from './statement.ts';

/** What somebody did to the evidence, or what the owner no longer had. */
export interface EvidenceFinding {
  /** `missing`: the owner did not have it any more, or an older Offsite did not keep it. */
  kind: 'contradicted' | 'missing';
  /** The names of the subjects that it concerns. Empty: the bundle as a whole. */
  trials: string[];
  /** One line, with the entry. */
  message: string;
}

/** What is remembered of a record, which may be large. */
interface RecordFacts extends Pick<TrialRecord, 'verdict'> {
  caseName: string | undefined;
  ordinal: number | undefined;
  /** The contents that it names. */
  names: { sha256: string; what: string; kind: 'blob' | 'workspace' }[];
}

/** What is remembered of a report. */
interface ReportFacts {
  ordinal: unknown;
  /** The sha256 of the record that it names; undefined if an older Offsite made it. */
  record: string | undefined;
}

interface PlanFacts {
  trials: number;
  caseIds: string[];
  variants: string[];
}

/**
 * The documents of a bundle: plan, setups, records and reports. They are read as they come and compared with
 * the statement at the end.
 */
export class Documents {
  readonly #statement: Statement;
  readonly #trials: NamedTrial[];
  readonly #roles = new Map<string, Set<'plan' | 'setup' | 'record' | 'report'>>();
  /** How often the statement names each document. */
  readonly #uses = new Map<string, number>();
  /** Contents that records name, for each use of the record. */
  #named = 0;
  readonly #records = new Map<string, RecordFacts>();
  readonly #reports = new Map<string, ReportFacts>();
  #plan: PlanFacts | undefined;
  /** Contents without their content, by the name of their entry, with what happened to them. */
  readonly #gone = new Map<string, string>();

  constructor(statement: Statement) {
    const { batch } = statement.predicate;
    this.#statement = statement;
    this.#trials = namedTrials(batch);
    const add = (sha256: string | undefined, role: 'plan' | 'setup' | 'record' | 'report') => {
      if (sha256 === undefined) return;
      this.#roles.set(sha256, (this.#roles.get(sha256) ?? new Set()).add(role));
      this.#uses.set(sha256, (this.#uses.get(sha256) ?? 0) + 1);
    };
    add(batch.plan, 'plan');
    for (const { setup, trials } of batch.runs) {
      add(setup, 'setup');
      for (const { result, report, attempts, gradings } of trials) {
        add(result?.record, 'record');
        add(report?.body, 'report');
        for (const attempt of attempts) add(attempt.result, 'record');
        for (const { record } of gradings) add(record, 'record');
      }
    }
  }

  isDocument({ kind, sha256 }: Content): boolean {
    return kind === 'blob' && this.#roles.has(sha256);
  }

  /** Notes that the content is not in the bundle. */
  dropped(content: Content): void {
    this.#gone.set(entryOf(content), 'is not in the bundle');
  }

  /** Notes that the content has another hash. */
  changed(content: Content): void {
    this.#gone.set(entryOf(content), 'was changed: its content has another hash');
  }

  /** Reads a document. Throws if it is not what the statement takes it for: others read it as that. */
  add({ sha256 }: Content, text: string): void {
    const json = parseForeignJson(text);
    for (const role of this.#roles.get(sha256) ?? []) {
      if (role === 'record') this.#addRecord(sha256, factsOf(readRecord(json)));
      else if (typeof json !== 'object' || json === null) throw new Error(`it is no ${role}`);
      else if (role === 'report') this.#reports.set(sha256, reportFacts(json));
      else if (role === 'plan') this.#plan = planFacts(json);
    }
  }

  #addRecord(sha256: string, facts: RecordFacts): void {
    this.#named += facts.names.length * (this.#uses.get(sha256) ?? 1);
    const most = evidenceBundles.count.names;
    if (this.#named > most) throw new Error(`with it, records name more than ${most} contents`);
    this.#records.set(sha256, facts);
  }

  /** What does not fit together. */
  findings(): EvidenceFinding[] {
    return [
      ...this.#ofContents(),
      ...this.#trials.flatMap((trial) => this.#ofTrial(trial)),
      ...this.#ofPlan(),
    ];
  }

  /** The contents that are gone, with the trials that need them. */
  #ofContents(): EvidenceFinding[] {
    if (this.#gone.size === 0) return [];
    const needed = new Map<string, Set<string>>();
    for (const { name, run, trial } of this.#trials) {
      const { result, report, attempts, gradings } = trial;
      const records = [
        result?.record,
        ...attempts.map((each) => each.result),
        ...gradings.map((each) => each.record),
      ];
      const named = [
        ...[...records, report?.body, run.setup].flatMap((sha256) => (sha256 ? [`blobs/${sha256}`] : [])),
        ...records.flatMap((sha256) => this.#records.get(sha256 ?? '')?.names.map(entryOf) ?? []),
      ];
      for (const entry of named) needed.set(entry, (needed.get(entry) ?? new Set()).add(name));
    }
    return [...this.#gone].map(([entry, what]) => ({
      kind: 'contradicted',
      trials: [...(needed.get(entry) ?? [])],
      message: `${entry} ${what}`,
    }));
  }

  #ofTrial({ name, run, trial: { ordinal, result, report } }: NamedTrial): EvidenceFinding[] {
    const found: EvidenceFinding[] = [];
    const say = (kind: EvidenceFinding['kind'], message: string) =>
      found.push({ kind, trials: [name], message: `${name}: ${message}` });
    const record = result && this.#records.get(result.record);
    if (result && !record && !this.#gone.has(`blobs/${result.record}`))
      say('missing', 'its record was not there when the bundle was written');
    if (record && record.verdict !== result?.verdict)
      say('contradicted', `the statement says ${result?.verdict}, and its record ${record.verdict}`);
    if (record?.caseName !== undefined && record.caseName !== run.caseName)
      say('contradicted', `its record is of the case ${JSON.stringify(record.caseName)}`);
    if (record?.ordinal !== undefined && record.ordinal !== ordinal)
      say('contradicted', `its record is of trial ${record.ordinal}`);
    for (const { sha256, what, kind } of record?.names ?? [])
      if (!this.#isListed(kind, sha256)) say('missing', `${what} was not there when the bundle was written`);
    for (const [sha256, what] of [
      [run.setup, 'its setup'],
      [report?.body, 'its report'],
    ])
      if (sha256 !== undefined && !this.#isListed('blob', sha256))
        say('missing', `${what} was not there when the bundle was written`);
    const sent = report && this.#reports.get(report.body);
    if (!result || !sent) return found;
    if (sent.record === undefined)
      say('missing', 'its report does not name its record: an older Offsite made it');
    else if (sent.record !== result.record)
      say('contradicted', `its report names another record, ${sent.record}`);
    if (sent.ordinal !== ordinal) say('contradicted', `its report is of trial ${sent.ordinal}`);
    return found;
  }

  #isListed(kind: Content['kind'], sha256: string): boolean {
    this.#listed ??= new Set(this.#statement.predicate.contents.map(entryOf));
    return this.#listed.has(entryOf({ kind, sha256 }));
  }

  #listed: Set<string> | undefined;

  /** The trials that the plan has and the statement does not. */
  #ofPlan(): EvidenceFinding[] {
    const { plan } = this.#statement.predicate.batch;
    if (!this.#plan) {
      // A plan that somebody took out is told with the other contents.
      if (plan !== undefined && this.#isListed('blob', plan)) return [];
      const message = 'its plan is not there, so a trial that was left out would not be noticed';
      return [{ kind: 'missing', trials: [], message }];
    }
    const { trials, caseIds, variants } = this.#plan;
    const listed = new Map<string, number>();
    for (const { caseId, variantIndex, trials } of this.#statement.predicate.batch.runs)
      listed.set(`${variantIndex} ${caseId}`, trials.length);
    const found: EvidenceFinding[] = [];
    for (const caseId of caseIds)
      for (const [index, variant] of variants.entries()) {
        const count = listed.get(`${index} ${caseId}`) ?? 0;
        if (count >= trials) continue;
        const what = `the plan has ${trials} trials of ${caseId} on ${variant}, and the statement lists ${count}`;
        found.push({ kind: 'contradicted', trials: [], message: what });
        // A plan of a stranger may have any number of cases.
        if (found.length >= evidenceBundles.count.findings) return found;
      }
    return found;
  }
}

function factsOf(record: TrialRecord): RecordFacts {
  const { verdict, subject, left } = record;
  const blobs = namedBlobs(record).map(({ sha256, what }) => ({ sha256, what, kind: 'blob' as const }));
  const archive = left?.kind === 'archive' ? [{ sha256: left.sha256, kind: 'workspace' as const }] : [];
  const names = [...blobs, ...archive.map((one) => ({ ...one, what: 'the workspace that it left' }))];
  return { verdict, caseName: subject?.caseName, ordinal: subject?.ordinal, names };
}

function reportFacts(json: object): ReportFacts {
  const { ordinal, outcome } = json as { ordinal?: unknown; outcome?: { artifacts?: unknown } };
  const artifacts = outcome?.artifacts;
  const named = Array.isArray(artifacts)
    ? artifacts.find((artifact) => artifact?.path === recordPath)
    : undefined;
  return { ordinal, record: named === undefined ? undefined : String(named.sha256) };
}

function planFacts(json: object): PlanFacts {
  try {
    const plan = readPlan(json);
    const caseIds = plan.cases.map(({ request }) => String(request.id));
    if (!Number.isSafeInteger(plan.trials) || plan.trials < 1)
      throw new Error(`it asks for ${JSON.stringify(plan.trials)} trials of each case`);
    if (new Set(caseIds).size < caseIds.length) throw new Error('it has a case twice');
    return { trials: plan.trials, caseIds, variants: plan.variants.map(({ name }) => String(name)) };
  } catch (error) {
    throw new Error(`it is no plan: ${messageOf(error)}`);
  }
}
