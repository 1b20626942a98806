"""A speaking program of your own: FastAPI with a pipeline mounted in it.

    pip install fastapi uvicorn
    PORTICO_PROGRAM=build/release/portico uvicorn --app-dir examples/omni embed:app
    curl localhost:8000/about
    curl localhost:8000/voice/v1/audio/speech -H 'content-type: application/json' -d '{"input": "Good morning."}' -o speech.wav
"""
from fastapi import FastAPI
from portico.omni import Client, create_app

client = Client(overrides={"say.factory.voice": "rms"})  # the bundled pipeline
voice = create_app(client, model_name="demo")
app = FastAPI(lifespan=voice.lifespan)  # the pipeline runs while this program does


@app.get("/about")
async def about():
    said = await client.speech({"input": "Good morning.", "response_format": "wav"})
    return {"health": await client.health(), "seconds": len(said.audio_bytes) / 2 / said.sample_rate}


app.mount("/voice", voice)
