import { acp } from '../../../runners/acp/runner.ts';
import { opencode } from '../../../runners/opencode/runner.ts';
import { qwenCode } from '../../../runners/qwen-code/runner.ts';
import type { Runner } from '../../../src/harness/runner.ts';
import type { Profile } from '../../../src/suite/plan.ts';

/** A real agent that speaks the protocol, as a profile of the acp harness starts it. */
export interface AcpAgent {
  profile: Pick<Profile, 'run' | 'env'>;
  /** The runner whose install script brings the same package. */
  installed: Runner;
}

const opencodeConfig = {
  autoupdate: false,
  share: 'disabled',
  permission: 'allow',
  model: 'offsite/$OFFSITE_MODEL',
  small_model: 'offsite/$OFFSITE_MODEL',
  provider: {
    offsite: {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: '$OPENAI_BASE_URL', apiKey: '$OPENAI_API_KEY' },
      models: { $OFFSITE_MODEL: { limit: { context: 100_000, output: 8_000 } } },
    },
  },
};

const qwenSettings = {
  general: { enableAutoUpdate: false },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  // This feature is a second agent that reads along and asks the model, too.
  memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
};

export const agents = {
  opencode: {
    installed: opencode,
    profile: {
      env: {
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      },
      run: `export OPENCODE_CONFIG_CONTENT="$(cat <<END
${JSON.stringify(opencodeConfig)}
END
)"
exec /offsite/cli/bin/opencode acp "$@"`,
    },
  },
  'qwen-code': {
    installed: qwenCode,
    profile: {
      env: { QWEN_CODE_NO_RELAUNCH: '1', QWEN_CODE_SYSTEM_SETTINGS_PATH: '/tmp/qwen.json' },
      run: `cat > "$QWEN_CODE_SYSTEM_SETTINGS_PATH" <<END
${JSON.stringify(qwenSettings)}
END
export OPENAI_MODEL="$OFFSITE_MODEL"
exec /offsite/cli/bin/qwen --acp --yolo --auth-type openai -m "$OFFSITE_MODEL" "$@"`,
    },
  },
} satisfies Record<string, AcpAgent>;

/** The acp harness with this agent in its profile. */
export function withAgent({ profile, installed }: AcpAgent): Runner {
  return {
    ...acp,
    label: `acp with ${installed.label}`,
    ...(installed.install && { install: installed.install }),
    open: (context) =>
      acp.open({
        ...context,
        profile: { ...context.profile, ...profile },
        env: { ...context.env, ...profile.env },
      }),
  };
}
