import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { LaterGrading } from '../../../record/audit.ts';
import type { EnvironmentStep } from '../../../record/environment.ts';
import { isJudgment } from '../../../record/failures.ts';
import type { HostConnection } from '../../../record/model-account.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import type { TrialPage } from '../../model/shapes.ts';
import { Fold } from '../parts/fold.tsx';
import { line } from '../parts/foreign.ts';
import { Figure } from '../parts/heading.tsx';
import { duration, plural, when } from '../parts/quantities.ts';
import { BlobText, TextBlock } from '../parts/text-block.tsx';
import { setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { Artifacts } from './artifacts.tsx';
import { Attempts } from './attempts.tsx';
import { Changes } from './changes.tsx';
import { Checks } from './checks.tsx';
import { RecordText, useLoadValue, useRecord } from './record-context.tsx';
import { Timeline } from './timeline.tsx';

interface Tab {
  name: string;
  title: string;
  count?: number | undefined;
  content: () => ComponentChildren;
}

/** The parts of a trial's page. */
export function TrialTabs({ page, query }: { page: TrialPage; query: URLSearchParams }) {
  const { record } = useRecord();
  const tabs = tabsOf(page, record, query);
  const chosen = tabs.find(({ name }) => name === query.get('tab')) ?? tabs[0];
  const list = useRef<HTMLDivElement>(null);
  // On a narrow screen the tabs scroll.
  useEffect(() => {
    list.current
      ?.querySelector(`#tab-${chosen?.name}`)
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [chosen?.name]);
  const choose = (tab: Tab | undefined, focus = false) => {
    if (!tab) return;
    setQuery({ tab: tab.name === tabs[0]?.name ? undefined : tab.name });
    if (focus) list.current?.querySelector<HTMLElement>(`#tab-${tab.name}`)?.focus();
  };
  const move = (by: number) => {
    const index = (chosen ? tabs.indexOf(chosen) : 0) + by;
    choose(tabs[(index + tabs.length) % tabs.length], true);
  };
  useShortcuts([
    { keys: ['h', 'ArrowLeft'], does: 'Previous part of the trial', run: () => move(-1) },
    { keys: ['l', 'ArrowRight'], does: 'Next part of the trial', run: () => move(1) },
  ]);
  return (
    <>
      <div class="tabs" role="tablist" aria-label="Parts of the trial" ref={list}>
        {tabs.map((tab) => (
          <button
            key={tab.name}
            id={`tab-${tab.name}`}
            type="button"
            role="tab"
            aria-selected={tab === chosen}
            aria-controls="tab-content"
            tabIndex={tab === chosen ? 0 : -1}
            onClick={() => choose(tab)}
          >
            {tab.title}
            {tab.count !== undefined && <span class="count">{tab.count}</span>}
          </button>
        ))}
      </div>
      <div
        class={`tab-content ${chosen?.name}`}
        id="tab-content"
        role="tabpanel"
        aria-labelledby={`tab-${chosen?.name}`}
      >
        {chosen?.content()}
      </div>
    </>
  );
}

function tabsOf(page: TrialPage, record: TrialRecord, query: URLSearchParams): Tab[] {
  const { verifySteps = [], validations = [], judgments = [], artifacts, environment, changes } = record;
  const found = validations.filter((validation) => !isJudgment(validation, judgments));
  const checks = verifySteps.length + found.length + judgments.length;
  return [
    { name: 'timeline', title: 'Timeline', content: () => <Timeline query={query} /> },
    {
      name: 'changes',
      title: 'Changes',
      count: changes?.length ?? record.filesChangedCount ?? record.filesChanged?.length,
      content: () => <Changes />,
    },
    { name: 'checks', title: 'Checks', count: checks, content: () => <Checks /> },
    { name: 'task', title: 'Task', content: () => <Task /> },
    { name: 'artifacts', title: 'Artifacts', count: artifacts?.length ?? 0, content: () => <Artifacts /> },
    { name: 'environment', title: 'Environment', count: environment?.length, content: () => <Environment /> },
    {
      name: 'attempts',
      title: 'Attempts',
      count: page.attempts.length,
      content: () => <Attempts page={page} />,
    },
    ...(page.gradings.length > 0 ? [gradingsTab(page)] : []),
    { name: 'raw', title: 'Raw', content: () => <Raw /> },
  ];
}

function gradingsTab(page: TrialPage): Tab {
  const { length: count } = page.gradings;
  return { name: 'gradings', title: 'Graded again', count, content: () => <Gradings page={page} /> };
}

/** Install and prepare, with what they printed. */
function Environment() {
  const { record } = useRecord();
  const { environment = [] } = record;
  if (environment.length === 0) return <p class="notice">Nothing was installed or prepared.</p>;
  return (
    <div class="scroll-pane">
      {environment.map((step, index) => (
        <Step key={index} {...step} />
      ))}
    </div>
  );
}

function Step({ phase, description, startedAt, durationMs, exitCode, log }: EnvironmentStep) {
  const failed = exitCode !== undefined && exitCode !== 0;
  const facts = [
    exitCode !== undefined && `exit ${exitCode}`,
    durationMs !== undefined && duration(durationMs),
    startedAt !== undefined && when(startedAt),
  ];
  const summary = (
    <>
      <span class={`tag ${failed ? 'failed' : ''}`}>{phase}</span>{' '}
      <span class="name">{line(description)}</span>{' '}
      <span class="dim">{facts.filter((fact) => fact !== false).join(' · ')}</span>
    </>
  );
  return (
    <Fold class="check" isOpen={failed} summary={summary}>
      {() =>
        log === undefined ? (
          <p class="dim">It printed nothing, or another Offsite process ran it.</p>
        ) : (
          <BlobText label="Output" sha256={log} />
        )
      }
    </Fold>
  );
}

/** The record as JSON, part by part. */
function Raw() {
  const { record, cuts } = useRecord();
  const load = useLoadValue();
  const [failure, setFailure] = useState<string>();
  const cutCount = Object.keys(cuts).length;
  const save = async () => {
    const url = URL.createObjectURL(new Blob([await load('')], { type: 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'record.json';
    link.click();
    // The browser reads it after the click.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return (
    <div class="scroll-pane">
      <p>
        <button type="button" onClick={() => void save().catch((error: Error) => setFailure(error.message))}>
          Save the whole record
        </button>{' '}
        {cutCount > 0 && <span class="dim">{plural(cutCount, 'long text')} shortened below.</span>} {failure}
      </p>
      {Object.entries(record).map(([name, value]) => (
        <Part key={name} name={name} value={value} />
      ))}
    </div>
  );
}

function Part({ name, value }: { name: string; value: unknown }) {
  if (typeof value !== 'object' || value === null)
    return (
      <p class="member">
        <code>{name}</code> {line(JSON.stringify(value))}
      </p>
    );
  const summary = (
    <>
      <code>{name}</code>{' '}
      <span class="dim">{Array.isArray(value) ? plural(value.length, 'entry', 'entries') : ''}</span>
    </>
  );
  return (
    <Fold class="file" summary={summary}>
      {() => <TextBlock text={JSON.stringify(value, null, 2)} label={name} />}
    </Fold>
  );
}

/** The later gradings of a trial, newest first, each beside the first one. */
function Gradings({ page }: { page: TrialPage }) {
  const first = page.trial.verdict ?? 'void';
  return (
    <div class="scroll-pane">
      {page.gradings.toReversed().map((grading) => (
        <Grading key={grading.gradedAt} grading={grading} first={first} />
      ))}
    </div>
  );
}

function Grading({ grading, first }: { grading: LaterGrading; first: string }) {
  const { gradedAt, verdict, suite, notes, cause, checks, unreadable } = grading;
  return (
    <section class="grading" aria-label={`Grading of ${when(gradedAt)}`}>
      <p>
        <b>{when(gradedAt)}</b> <span class="tag">{first}</span> <span aria-hidden="true">→</span>{' '}
        <span class="tag">{verdict}</span>{' '}
        <span class="dim">{suite === undefined ? 'as the batch was planned' : `by ${line(suite)}`}</span>
      </p>
      {cause && (
        <p>
          {line(cause.kind)}, in {line(cause.phase)}: {line(cause.message)}
        </p>
      )}
      {unreadable !== undefined && <p role="alert">{line(unreadable)}</p>}
      {notes.map((note) => (
        <p key={note} class="note">
          {line(note)}
        </p>
      ))}
      {checks.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Check</th>
              <th scope="col">In the trial</th>
              <th scope="col">Graded again</th>
            </tr>
          </thead>
          <tbody>
            {checks.map(({ kind, name, was, now, changed }, index) => (
              <tr key={index}>
                <td>
                  <span class="dim">{kind}</span> {changed ? <b>{line(name)}</b> : line(name)}
                </td>
                <td>{line(was ?? 'none')}</td>
                <td>{line(now ?? 'none')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

/** What the trial was asked to do, and the setup that it ran with. */
function Task() {
  const { record } = useRecord();
  const { subject, harnessVersion, turns, sandboxId, imageId, disagreements, sandboxLacks } = record;
  const mapped = record.mappedImages?.map(({ name, usedInstead }) => `${usedInstead} in place of ${name}`);
  const digests = record.images?.flatMap(({ name, digest }) => (digest ? [`${name}@${digest}`] : []));
  const { replay } = record;
  const replayed = replay && `recorded answers of ${replay.of} took the place of a model`;
  const facts = [
    ['Model', subject?.model],
    ['Not a live result', replayed],
    ['Harness', [subject?.harness, harnessVersion].filter((part) => part !== undefined).join(' ')],
    ['Profile', subject?.profile],
    ['Image', subject?.image],
    ['Digests', digests?.join(', ')],
    ['Images that the configuration replaces', mapped?.join(', ')],
    ['Workspace', record.workspace],
    ['Source', record.source && `${record.source.commit} of ${record.source.url}`],
    ['Network', subject?.network],
    ['Hosts that the agent may reach', reached(subject?.hosts, record.models?.connections)],
    ['Hosts that the tests may reach', reached(subject?.testsHosts, record.testsConnections)],
    ['Messages to the harness', turns === undefined ? undefined : String(turns)],
    ['Engine', record.engine],
    ['Sandbox', sandboxId?.slice(0, 12)],
    ['Made from', imageId?.replace('sha256:', '').slice(0, 12)],
    ['Services', record.services?.map(({ name, image }) => `${name}: ${image}`).join(', ')],
    ['Limits that the engine could not apply', sandboxLacks?.join(', ')],
    ['What the harness did not get', record.deviations?.join(', ')],
  ].filter((fact): fact is [string, string] => Boolean(fact[1]));
  return (
    <div class="scroll-pane">
      <h2>What was tried</h2>
      <dl class="facts">
        {facts.map(([label, value]) => (
          <Figure key={label} name={label} value={line(value)} />
        ))}
      </dl>
      {disagreements && disagreements.length > 0 && (
        <>
          <h3>Where the harness's counts differ from Offsite's</h3>
          <ul>
            {disagreements.map((each) => (
              <li key={each}>{line(each)}</li>
            ))}
          </ul>
        </>
      )}
      <RecordText label="Prompt" pointer="/subject/prompt" />
      <RecordText label="Final message of the agent" pointer="/finalMessage" />
      <RecordText label="Verify script" pointer="/subject/verify" />
    </div>
  );
}

/** Hosts with the number of connections to them; undefined if there was nothing to reach. */
function reached(
  hosts: readonly string[] = [],
  connections: readonly HostConnection[] = [],
): string | undefined {
  if (hosts.length === 0 && connections.length === 0) return undefined;
  const failed = connections.filter(({ failure }) => failure !== undefined).length;
  const counted = `${plural(connections.length, 'connection')}${failed > 0 ? `, ${failed} failed` : ''}`;
  return `${hosts.length === 0 ? 'none' : hosts.join(', ')} (${counted})`;
}
