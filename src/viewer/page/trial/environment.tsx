import { useState } from 'preact/hooks';
import type { EnvironmentStep } from '../../../record/environment.ts';
import { BlobText } from '../parts/blob-text.tsx';
import { line } from '../parts/foreign.ts';
import { duration, when } from '../parts/quantities.ts';
import { useRecord } from './record-context.ts';

/** Install and prepare, with what they printed. */
export function Environment() {
  const { record } = useRecord();
  const { environment = [] } = record;
  if (environment.length === 0) return <p class="notice">Nothing was installed or prepared.</p>;
  return (
    <div class="scroll-pane">
      {environment.map((step, index) => (
        <Step key={index} step={step} />
      ))}
    </div>
  );
}

function Step({
  step: { phase, description, startedAt, durationMs, exitCode, log },
}: {
  step: EnvironmentStep;
}) {
  const failed = exitCode !== undefined && exitCode !== 0;
  const [isOpen, setOpen] = useState(failed);
  const facts = [
    ...(exitCode === undefined ? [] : [`exit ${exitCode}`]),
    ...(durationMs === undefined ? [] : [duration(durationMs)]),
    ...(startedAt === undefined ? [] : [when(startedAt)]),
  ];
  return (
    <details class="check" open={failed} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class={`tag ${failed ? 'failed' : ''}`}>{phase}</span>{' '}
        <span class="name">{line(description)}</span> <span class="dim">{facts.join(' · ')}</span>
      </summary>
      {log === undefined ? (
        <p class="dim">It printed nothing, or another Offsite process ran it.</p>
      ) : (
        isOpen && <BlobText label="Output" sha256={log} />
      )}
    </details>
  );
}
