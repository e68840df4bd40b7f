import type { HostConnection } from '../../../record/model-account.ts';
import { line } from '../parts/foreign.ts';
import { plural } from '../parts/quantities.ts';
import { useRecord } from './record-context.ts';
import { RecordText } from './record-text.tsx';

/** What the trial was asked to do, and the setup that it ran with. */
export function Task() {
  const { record } = useRecord();
  const { subject, harnessVersion, finalMessage, turns, sandboxId, imageId, disagreements, sandboxLacks } =
    record;
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
          <div key={label}>
            <dt>{label}</dt>
            <dd>{line(value)}</dd>
          </div>
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
      {subject && <RecordText label="Prompt" pointer="/subject/prompt" text={subject.prompt} />}
      {finalMessage !== undefined && (
        <RecordText label="Final message of the agent" pointer="/finalMessage" text={finalMessage} />
      )}
      {subject?.verify !== undefined && (
        <RecordText label="Verify script" pointer="/subject/verify" text={subject.verify} />
      )}
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
