import { OffsiteError } from '../../offsite-error.ts';
import { ModelConfig } from '../../suite/model-config.ts';
import type { SessionReplay, SessionRequest } from '../gateway.ts';
import type { GatewayParts } from '../gateway-parts.ts';
import { recordedModel, type ServedModel } from '../served-model.ts';
import type { Cassette } from './cassette.ts';
import { RecordedFinder } from './find-recorded.ts';
import { recordingInOrder } from './recording-in-order.ts';
import { recordingOf } from './replay.ts';

type Serve = (name: string) => ServedModel;

/**
 * Finds the models of one session. All models of a session that is replayed answer from its recording. In
 * other sessions, models whose configuration names a cassette answer from that cassette. `serve` finds all
 * other models, and throws for a name that is not configured.
 */
export function replayingModels(request: SessionRequest, parts: GatewayParts, serve: Serve): Serve {
  const { replay, label } = request;
  if (replay) return fromRecording(replay, new RecordedFinder(replay.cassette, label), parts, serve);
  const finders = new Map<Cassette, RecordedFinder>();
  return (asked) => {
    const [name, config] = configured(asked, parts);
    if (!config || !('replay' in config)) return serve(asked);
    const cassette = parts.cassette?.(config.replay);
    if (!cassette) throw new Error('this gateway reads no cassettes');
    const finder = finders.get(cassette) ?? new RecordedFinder(cassette, label);
    finders.set(cassette, finder);
    const of = recordedName(name, config.replay, cassette);
    const recording = recordingOf({
      cassette,
      finder,
      model: name,
      of,
      live: 'never',
      isCassette: true,
      clock: parts.clock,
    });
    return recordedModel(name, config, recording, undefined, parts);
  };
}

function fromRecording(
  { cassette, live, of: recorded, inOrder = false }: SessionReplay,
  finder: RecordedFinder,
  parts: GatewayParts,
  serve: Serve,
): Serve {
  const ordered = inOrder ? recordingInOrder(cassette, parts.clock) : undefined;
  return (asked) => {
    const [name, known] = configured(asked, parts);
    const config = known ?? ModelConfig.parse({ replay: cassette.name });
    const of = recorded === 'any' ? undefined : name;
    const recording = ordered ?? recordingOf({ cassette, finder, model: name, of, live, clock: parts.clock });
    return recordedModel(name, config, recording, live === 'never' ? undefined : serve(asked), parts);
  };
}

/** A model's own name and configuration, given its name or an alias. */
function configured(
  asked: string,
  { models }: GatewayParts,
): readonly [name: string, config: ModelConfig | undefined] {
  if (Object.hasOwn(models, asked)) return [asked, models[asked]];
  const [name = asked, config] =
    Object.entries(models).find(([, { aliases }]) => aliases.includes(asked)) ?? [];
  return [name, config];
}

/** The model of a cassette that another one replays: that of the same name, or the only one. */
function recordedName(name: string, file: string, { trials }: Cassette): string {
  const names = new Set(trials.flatMap((trial) => trial.exchanges().map(({ model }) => model)));
  const [only, other] = names;
  if (names.has(name)) return name;
  if (only !== undefined && other === undefined) return only;
  throw new OffsiteError(
    `the model ${name} replays ${file}, which recorded ${[...names].join(', ') || 'no model'}`,
    { code: 'REPLAY_MODEL_UNKNOWN', kind: 'input', hint: 'Give the model the name that was recorded.' },
  );
}
